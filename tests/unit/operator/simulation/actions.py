"""Everything that can happen to a model: what users do, what the cluster does, and what befalls the operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cosyvoice_operator import names
from tests.unit.operator.simulation.fake_cluster import Fault
from tests.unit.operator.simulation.fates import Fate
from tests.unit.operator.simulation.store import MODEL, Object, label_of
from tests.unit.operator.simulation.world import World


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that happens, and the seconds that pass after it. Its repr can be pasted into a test."""

    what: str
    args: tuple[Any, ...] = ()
    wait: float = 0.0


async def perform(world: World, action: Action) -> None:
    """Let it happen, and let the time pass."""
    world.note(f"-- {action.what} {' '.join(map(str, action.args))}")
    happen(world, action)
    await world.advance(action.wait)


def happen(world: World, action: Action) -> None:
    """Let it happen. Where there is nothing for it to happen to, nothing does."""
    _ACTIONS[action.what](world, *action.args)


# ----- what users do --------------------------------------------------------------------------------------------------


def _spec(world: World, path: str, value: Any) -> None:
    """Set a field of the spec, such as rollout.strategy."""
    model = world.model
    if model is None:
        return
    part, _, field = path.rpartition(".")
    spec = model["spec"]
    spec = {**spec, part: {**spec.get(part, {}), field: value}} if part else {**spec, field: value}
    world.store.put({**model, "spec": spec})


def _annotate(world: World, annotation: str, value: str | None) -> None:
    model = world.model
    if model is not None:
        kept = {name: old for name, old in model["metadata"].get("annotations", {}).items() if name != annotation}
        annotations = kept if value is None else {**kept, annotation: value}
        world.store.put({**model, "metadata": {**model["metadata"], "annotations": annotations}})


def _retry(world: World, value: str | None) -> None:
    _annotate(world, f"{names.GROUP}/retry", value)


def _pin(world: World, index: int) -> None:
    """Roll back to one of the stored revisions; a negative index: to one that does not exist."""
    stored = _revisions(world)
    if index < 0:
        _annotate(world, f"{names.GROUP}/rollback-to", "0123456789")
    elif stored:
        _annotate(world, f"{names.GROUP}/rollback-to", label_of(stored[index % len(stored)], names.LABEL_REVISION))


def _unpin(world: World) -> None:
    _annotate(world, f"{names.GROUP}/rollback-to", None)


def _delete(world: World, kind: str) -> None:
    world.store.remove(kind, MODEL)


def _delete_pod(world: World, index: int) -> None:
    pods = world.store.all("Pod")
    if pods:
        world.deployments.kill(pods[index % len(pods)], world.now)


def _delete_revision(world: World, index: int) -> None:
    stored = _revisions(world)
    if stored:
        gone = stored[index % len(stored)]
        world.lost_revisions.add(label_of(gone, names.LABEL_REVISION))
        world.store.remove("ConfigMap", gone["metadata"]["name"])


def _restart_rollout(world: World, value: str) -> None:
    """kubectl rollout restart."""

    def change(template: Object) -> Object:
        metadata = template["metadata"]
        annotations = {**metadata.get("annotations", {}), "kubectl.kubernetes.io/restartedAt": value}
        return {**template, "metadata": {**metadata, "annotations": annotations}}

    _tamper(world, change)


def _set_image(world: World, image: str) -> None:
    """kubectl set image."""

    def change(template: Object) -> Object:
        worker, *others = template["spec"]["containers"]
        return {**template, "spec": {**template["spec"], "containers": [{**worker, "image": image}, *others]}}

    _tamper(world, change)


def _tamper(world: World, change: Callable[[Object], Object]) -> None:
    deployment = world.store.get("Deployment", MODEL)
    if deployment is not None:
        spec = deployment["spec"]
        world.store.put({**deployment, "spec": {**spec, "template": change(spec["template"])}})
        world.tampered = True


def _pause_deployment(world: World) -> None:
    deployment = world.store.get("Deployment", MODEL)
    if deployment is not None:
        world.store.put({**deployment, "spec": {**deployment["spec"], "paused": True}})


# ----- what the cluster does ------------------------------------------------------------------------------------------


def _fate(world: World, version: str, fates: tuple[str, ...]) -> None:
    world.set_fates(version, tuple(map(Fate, fates)))


def _other_bytes(world: World, version: str) -> None:
    """Someone writes other weights under the same version."""
    world.changes.append(version)


def _room(world: World, room: bool) -> None:
    world.kubelets.nodes.room = room


def _slots(world: World, node: str, count: int) -> None:
    world.kubelets.nodes.slots[node] = count


def _quota(world: World, pods: int | None) -> None:
    world.deployments.quota = pods


def _node(world: World, node: str, up: bool) -> None:
    world.kubelets.set_down(node, not up, world.now)


def _crash(world: World, index: int) -> None:
    pods = world.store.all("Pod")
    if pods:
        world.crashes += 1
        world.kubelets.crash(pods[index % len(pods)], world.now)


def _lose(world: World, index: int, reason: str) -> None:
    pods = world.store.all("Pod")
    if pods:
        world.kubelets.lose(pods[index % len(pods)], reason)


# ----- what befalls the operator --------------------------------------------------------------------------------------


def _fault(world: World, writes: int, after: bool, crash: bool) -> None:
    world.cluster.fault = Fault(writes, after, crash)


def _interrupt(world: World, requests: int, what: str, *args: Any) -> None:
    """The action happens in the middle of a pass, before one of its requests."""

    def now() -> None:
        world.note(f"-- in the middle of a pass: {what} {' '.join(map(str, args))}")
        happen(world, Action(what, args))
        world.move()

    world.cluster.interruption = (requests, now)
    world.operator.notify()


def _deaf(world: World, seconds: float) -> None:
    """The watches lose every event for a while."""
    world.operator.deaf_until = world.now + timedelta(seconds=seconds)


def _restart(world: World) -> None:
    world.operator.start()


def _upgrade(world: World, image: str) -> None:
    """A new release of the operator, with another default image."""
    world.operator.start(image)


def _nothing(_world: World) -> None:
    """Time passes."""


def _poke(world: World) -> None:
    """An event that was told before is told again."""
    world.operator.notify()


def _revisions(world: World) -> list[Object]:
    return [raw for raw in world.store.all("ConfigMap") if names.KEY_TEMPLATE in raw["data"]]


_ACTIONS: dict[str, Callable[..., None]] = {
    "spec": _spec,
    "retry": _retry,
    "pin": _pin,
    "unpin": _unpin,
    "delete": _delete,
    "delete-pod": _delete_pod,
    "delete-revision": _delete_revision,
    "restart-rollout": _restart_rollout,
    "set-image": _set_image,
    "pause-deployment": _pause_deployment,
    "fate": _fate,
    "other-bytes": _other_bytes,
    "room": _room,
    "slots": _slots,
    "quota": _quota,
    "node": _node,
    "crash": _crash,
    "lose": _lose,
    "fault": _fault,
    "interrupt": _interrupt,
    "deaf": _deaf,
    "restart": _restart,
    "upgrade": _upgrade,
    "poke": _poke,
    "wait": _nothing,
}

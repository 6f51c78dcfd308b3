"""When events stop: the system comes to rest, and at the right place."""

from __future__ import annotations

from datetime import timedelta

from cosyvoice_operator import api, names, revision
from cosyvoice_operator.errors import InvalidSpecError
from tests.unit.operator.simulation.broken import BrokenInvariantError
from tests.unit.operator.simulation.fates import FATAL, WORKING
from tests.unit.operator.simulation.store import MODEL, label_of
from tests.unit.operator.simulation.world import World

QUIET = timedelta(seconds=700)  # longer than any deadline of the histories, and than two resyncs
LONGEST = timedelta(hours=12)
HELD = frozenset({"InvalidSpec", "Paused"})  # nothing is tried before the user has acted


async def settle(world: World) -> None:
    """Let time pass until nothing changes any more. Raises BrokenInvariantError where that does not come."""
    end = world.now + LONGEST
    version, since = -1, world.now
    while world.now < end:
        await world.act()
        if world.store.version != version or world.next_move() is not None:
            version, since = world.store.version, world.now
        following = world.next_time()
        if (following is None or following - since > QUIET) and not _is_worth_a_retry(world):
            return
        world.now = following
    raise BrokenInvariantError("a fixed point is reached", f"still changing after {LONGEST}")


def _is_worth_a_retry(world: World) -> bool:
    """Whether a version that would work now waits to be tried again: it failed once, or had no room."""
    model = world.model
    if model is None or not set(world.fates.get(_version_tried(world), WORKING)) <= WORKING:
        return False
    status = model.get("status", {})
    if status.get("reason") in HELD:
        return False
    refused = any(run.swap is not None and run.swap.room for run in world.kubelets.runs.values())
    refused |= any(pod.get("status", {}).get("reason") == "Evicted" for pod in world.store.all("Pod"))
    if status.get("reason") == "NoCapacity" and refused and world.kubelets.nodes.room and not world.kubelets.nodes.down:
        return True
    return any(
        entry["revision"] == status.get("targetRevision") and "retryAfter" in entry
        for entry in status.get("quarantine", ())
    )


def _version_tried(world: World) -> str:
    """The version that the target revision has: not the spec's where another one is pinned."""
    model = world.model or {}
    target = model.get("status", {}).get("targetRevision")
    stored = world.store.get("ConfigMap", names.revision_name(MODEL, target or ""))
    return model["spec"]["version"] if stored is None else label_of(stored, names.LABEL_VERSION)


async def check_rest(world: World) -> None:
    """An operator that is started now finds nothing to write."""
    before, version = world.cluster.writes, world.store.version
    world.operator.start()
    await world.act()
    if world.cluster.writes != before or world.store.version != version:
        raise BrokenInvariantError("nothing is written at rest", f"{world.log[-1][1]}")


def heal(world: World) -> None:
    """The cluster has room again, and all its nodes; the operator hears."""
    nodes = world.kubelets.nodes
    for node in nodes.slots:
        nodes.slots[node] = 3
        world.kubelets.set_down(node, False, world.now)
    world.deployments.quota = None
    nodes.room = True
    world.cluster.fault = world.cluster.interruption = None
    world.operator.deaf_until = world.now


def check_ending(world: World) -> None:
    """Where a healthy cluster leaves no doubt about it: whether what has to serve serves, and what is told of it."""
    model = world.model
    if model is None or model["spec"].get("paused"):
        return
    wanted = model["metadata"].get("annotations", {}).get(f"{names.GROUP}/rollback-to")
    if wanted is not None:
        return
    status, spec = model["status"], api.parse(model).spec
    try:
        revision.resolve(spec, world.operator.policy)
    except InvalidSpecError:
        return
    wanted, fates = revision.identity(spec), world.ever[spec.version]
    if not spec.worker.replicas or world.crashes or world.changes:
        return
    works = set(world.fates[spec.version]) <= WORKING
    good = status.get("lastGoodRevision")
    if works and not fates & FATAL and (fates <= WORKING or good == wanted or _is_sound(world, good)):
        _expect(world, serving=wanted, ready=True)
    elif fates <= FATAL and good != wanted and _is_sound(world, good) and spec.rollout.automatic_rollback:
        _expect(world, serving=good, ready=False)


def _is_sound(world: World, good: str | None) -> bool:
    """Whether the revision that served before is there, and has always worked."""
    stored = world.store.get("ConfigMap", names.revision_name(MODEL, good or ""))
    if stored is None or good in world.lost_revisions:
        return False
    return world.ever[label_of(stored, names.LABEL_VERSION)] <= WORKING


def _expect(world: World, *, serving: str | None, ready: bool) -> None:
    model = world.model or {}
    status = model.get("status", {})
    pods = list(world.served())
    expected = [serving] * model["spec"].get("worker", {}).get("replicas", 2)
    told = next(entry["status"] for entry in status["conditions"] if entry["type"] == "Ready")
    if pods != expected or told != str(ready):
        found = f"pods {pods}, Ready {told} ({status.get('reason')}: {status.get('message')})"
        raise BrokenInvariantError("what can serve serves", f"expected {serving}, Ready {ready}; {found}")

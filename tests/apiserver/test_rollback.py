"""A version that fails, on a real API server: what is written, in which order, and what stays untouched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import prometheus_client
import pytest

from cosyvoice_operator import names
from tests.apiserver.deployment_controller import NODES, DeploymentController
from tests.apiserver.kubelet import Kubelet
from tests.apiserver.world import World, claim

MANY_STEPS = 100
BAD = {
    "schema": 1,
    "reason": "ShapeMismatch",
    "phase": "Build",
    "file": "llm.pt",
    "tensor": "lm.weight",
    "expected": "(2, 2)",
    "actual": "(2, 1)",
    "message": "llm.pt: lm.weight has another shape",
}
RESTARTED = "kubectl.kubernetes.io/restartedAt"


class Stage:
    """A world with controllers and kubelets played in it; the worker of v2 fails for good."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._controller = DeploymentController(world.admin, world.namespace, "narrator")
        self._kubelet = Kubelet(world.admin, world.namespace, {"v2": BAD})

    async def play(self, until: Callable[[dict[str, Any]], bool] | None = None) -> None:
        """Everybody takes steps until nobody has one left, or until the status is as wanted."""
        for _ in range(MANY_STEPS):
            moved = await self._controller.step() or await self._kubelet.step()
            before = len(self.world.writes())
            await self.world.one_pass()
            if until is not None and until(await self.world.status()):
                return
            if not moved and len(self.world.writes()) == before:
                return
        raise AssertionError(f"still moving after {MANY_STEPS} steps: {self.world.writes()[-8:]}")

    async def apply(self, version: str) -> None:
        await self.world.apply(version=version, worker={"replicas": 1})

    async def serve_v1(self) -> tuple[dict[str, Any], set[str]]:
        """v1 serves. The template of its Deployment, and the uids of its pods."""
        await self.apply("v1")
        await self.play()
        status = await self.world.status()
        assert status["reason"] == "Ready", status
        return (await self.world.child("Deployment"))["spec"]["template"], await self.pods()

    async def pods(self) -> set[str]:
        found = await self.world.admin.list("Pod", self.world.namespace)
        return {raw["metadata"]["uid"] for raw in found}

    async def annotate(self, *words: str) -> None:
        done = self.world.plane.kubectl("-n", self.world.namespace, "annotate", "--overwrite", "cvm/narrator", *words)
        assert done.returncode == 0, done.stderr

    async def restart_deployment(self) -> None:
        done = self.world.plane.kubectl("-n", self.world.namespace, "rollout", "restart", "deployment/narrator")
        assert done.returncode == 0, done.stderr

    async def make_node(self, name: str, *, ready: bool) -> None:
        """A node as its controller reports it. It is there for every namespace, until it is removed."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "namespace": ""}}
        told = {"type": "Ready", "status": "True" if ready else "Unknown", "reason": "NodeStatusUnknown"}
        told |= {"message": "Kubelet stopped posting node status.", "lastTransitionTime": "2026-11-30T12:00:00Z"}
        await self.world.admin.create(node)
        found = await self.world.admin.get("Node", "", name)
        assert found is not None
        found["metadata"]["namespace"] = ""
        await self.world.admin.replace({**found, "status": {"conditions": [told]}}, subresource="status")

    async def history(self) -> dict[str, tuple[str, str]]:
        """Outcome and digest by version."""
        found = await self.world.admin.list("ConfigMap", self.world.namespace, labels=names.LABEL_REVISION)
        labels = [raw["metadata"]["labels"] for raw in found]
        return {one[names.LABEL_VERSION]: (one[names.LABEL_OUTCOME], one.get(names.LABEL_DIGEST, "")) for one in labels}


@pytest.fixture
async def stage(world: World) -> Stage:
    world.now = datetime.now(UTC)  # the API server and the kubelets have the real time
    await world.admin.create(claim(world.namespace))
    return Stage(world)


def digest_of(version: str) -> str:
    """The digest of a played version's weights, as short as the history has it."""
    return hashlib.sha256(version.encode()).hexdigest()[:12]


def rollbacks_counted(stage: Stage) -> float:
    labels = {"model_namespace": stage.world.namespace, "model": "narrator", "reason": "ShapeMismatch"}
    return prometheus_client.REGISTRY.get_sample_value("cosyvoice_operator_rollbacks_total", labels) or 0.0


async def test_a_bad_version_is_rolled_back_and_told(stage: Stage) -> None:
    template, pods = await stage.serve_v1()
    await stage.apply("v2")
    await stage.play()

    status = await stage.world.status()
    assert status["reason"] == "RolledBack"
    assert status["message"].startswith("v2 failed: ShapeMismatch: llm.pt: lm.weight has another shape (")
    assert status["message"].endswith("; it is not tried again; v1 serves with 1 of 1 replicas")
    (entry,) = status["quarantine"]
    assert (entry["revision"], entry["reason"], entry["version"]) == (status["targetRevision"], "ShapeMismatch", "v2")
    assert (status["activeVersion"], status["targetVersion"], status["ready"]) == ("v1", "v2", "1/1")
    assert {one["type"]: one["status"] for one in status["conditions"]} | {"WeightsStaged": "", "WarmedUp": ""} == {
        "Ready": "False",
        "Available": "True",
        "Progressing": "False",
        "Stalled": "True",
        "Degraded": "True",
        "RolledBack": "True",
        "Pinned": "False",
        "WeightsStaged": "",
        "WarmedUp": "",
    }
    assert (await stage.world.child("Deployment"))["spec"]["template"] == template
    assert await stage.pods() == pods
    assert await stage.history() == {"v1": ("Good", digest_of("v1")), "v2": ("Failed", digest_of("v2"))}
    told = [event.partition(":")[0] for event in await stage.world.events()]
    for kind in ("Warning LoadFailed", "Warning RollingBack", "Normal RolledBack"):
        assert told.count(kind) == 1
    assert rollbacks_counted(stage) == 1


async def test_the_verdict_is_written_before_the_deployment_it_decides_on(stage: Stage) -> None:
    await stage.serve_v1()
    await stage.apply("v2")
    await stage.play(until=lambda status: status["reason"] == "Loading")
    before = len(stage.world.writes())

    await stage.play(until=lambda status: status["reason"] == "RollingBack")

    written = [write for write in stage.world.writes()[before:] if "events" not in write]
    bad = (await stage.world.status())["targetRevision"]
    assert written[-3:] == [
        "update cosyvoicemodels/status narrator",
        "patch deployments narrator",
        f"patch configmaps narrator-{bad}",  # the label that says how it did
    ]


async def test_a_bad_version_is_not_tried_again_by_itself_and_a_third_one_is_rolled_out(stage: Stage) -> None:
    await stage.serve_v1()
    await stage.apply("v2")
    await stage.play()
    before = stage.world.writes()
    for _ in range(5):
        await stage.world.one_pass()
    stage.world.restart()
    await stage.world.one_pass()
    assert stage.world.writes() == before

    stage.world.plane.kubectl("-n", stage.world.namespace, "scale", "cvm", "narrator", "--replicas=3")
    await stage.play()
    status = await stage.world.status()
    assert (status["reason"], status["ready"], status["activeVersion"]) == ("RolledBack", "3/3", "v1")

    await stage.apply("v3")
    await stage.play()
    status = await stage.world.status()
    assert (status["reason"], status["activeVersion"]) == ("Ready", "v3")
    assert [entry["version"] for entry in status["quarantine"]] == ["v2"]


async def test_a_restart_while_the_bad_version_runs_costs_the_good_one_no_pod(stage: Stage) -> None:
    """The annotation that `kubectl rollout restart` leaves would make the good version's ReplicaSet another one."""
    template, pods = await stage.serve_v1()
    await stage.apply("v2")
    await stage.play(until=lambda status: status["reason"] == "Loading")
    await stage.restart_deployment()

    await stage.play()

    after = (await stage.world.child("Deployment"))["spec"]
    assert after["template"] == template
    assert not after.get("paused")
    assert await stage.pods() == pods


async def test_a_restart_of_the_good_version_is_kept_when_it_comes_back(stage: Stage) -> None:
    await stage.serve_v1()
    await stage.restart_deployment()
    await stage.play()
    template, pods = (await stage.world.child("Deployment"))["spec"]["template"], await stage.pods()
    assert RESTARTED in template["metadata"]["annotations"]
    await stage.apply("v2")

    await stage.play()

    assert (await stage.world.status())["reason"] == "RolledBack"
    assert (await stage.world.child("Deployment"))["spec"]["template"] == template
    assert await stage.pods() == pods


async def test_a_new_retry_value_tries_the_version_once_more(stage: Stage) -> None:
    await stage.serve_v1()
    await stage.apply("v2")
    await stage.play()
    tried = (await stage.world.status())["rollout"]["attempt"]

    await stage.annotate("cosyvoice.dev/retry=1")
    await stage.play()

    status = await stage.world.status()
    assert (status["reason"], status["observedRetry"], status["quarantine"][0]["retry"]) == ("RolledBack", "1", "1")
    assert status["rollout"]["attempt"] == tried + 2  # there and back
    before = stage.world.writes()
    await stage.annotate("cosyvoice.dev/retry-")
    await stage.play()
    assert [write for write in stage.world.writes()[len(before) :] if "deployments" in write] == []


async def test_a_pin_goes_back_by_hand_and_taking_it_away_returns(stage: Stage) -> None:
    await stage.serve_v1()
    first = (await stage.world.status())["targetRevision"]
    await stage.apply("v3")
    await stage.play()

    await stage.annotate(f"cosyvoice.dev/rollback-to={first}")
    await stage.play()
    pinned = await stage.world.status()
    await stage.annotate("cosyvoice.dev/rollback-to-")
    await stage.play()
    returned = await stage.world.status()

    assert (pinned["reason"], pinned["activeVersion"], pinned["observedRollbackTo"]) == ("Pinned", "v1", first)
    assert (returned["reason"], returned["activeVersion"]) == ("Ready", "v3")
    assert "observedRollbackTo" not in returned


@pytest.mark.parametrize("ready", [True, False])
async def test_a_version_is_not_blamed_for_a_node_that_is_down(stage: Stage, ready: bool) -> None:
    await stage.serve_v1()
    await stage.apply("v2")
    await stage.play(until=lambda status: status["reason"] == "Loading")
    stage.world.now += timedelta(minutes=11)
    try:
        for name in NODES:
            await stage.make_node(name, ready=ready)
        await stage.world.one_pass()
    finally:
        for name in NODES:
            await stage.world.admin.delete("Node", "", name)

    status = await stage.world.status()
    if ready:
        assert (status["reason"], status["quarantine"][0]["reason"]) == ("RollingBack", "ProgressDeadlineExceeded")
    else:
        assert (status["reason"], "quarantine" in status) == ("NodeNotReady", False)
        assert "Kubelet stopped posting node status" in status["message"]

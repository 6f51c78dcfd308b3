"""Versions swapped in place, on a real API server: what is written, in which order, and that no pod is touched."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from cosyvoice_operator import names, swap
from cosyvoice_operator.gather import Gatherer
from cosyvoice_operator.observed import Pod
from cosyvoice_operator.publish import Publisher
from cosyvoice_operator.reconcile import Reconciler
from cosyvoice_operator.refusals import Refusals
from cosyvoice_operator.revision import Policy
from cosyvoice_operator.workers import Workers
from tests.apiserver.deployment_controller import DeploymentController
from tests.apiserver.kubelet import Kubelet
from tests.apiserver.world import World, claim

MANY_STEPS = 150
BAD = {"schema": 1, "reason": "MissingTensor", "phase": "Map", "tensor": "lm.weight", "message": "no lm.weight"}


class Played:
    """The way to the workers that the kubelet plays."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet

    async def fetch(self, namespace: str, pod: Pod) -> bytes:
        answer = self._kubelet.worker_status(pod.name)
        if answer is None:
            raise ConnectionRefusedError(f"{namespace}/{pod.name}")
        return answer


class Stage:
    """A world with controllers, kubelets and workers played in it; no worker can load a version that is called bad."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._controller = DeploymentController(world.admin, world.namespace, "narrator")
        self._kubelet = Kubelet(world.admin, world.namespace, {"bad": BAD})
        self.restart()

    def restart(self) -> None:
        """A new operator: nothing is remembered."""
        door, clock = self.world.api, lambda: self.world.now
        self.world.reconciler = Reconciler(
            door,
            Gatherer(door, Workers(Played(self._kubelet))),
            Publisher(door, clock, "test"),
            Refusals(door, lambda: clock().timestamp(), 300.0),
            Policy(worker_image="worker:1", device="cpu"),
            clock=clock,
        )

    async def play(self) -> dict[str, Any]:
        """Everybody takes steps until nobody has had one for a while; the status then."""
        idle = 0
        for _ in range(MANY_STEPS):
            moved = await self._controller.step() or await self._kubelet.step()
            before = len(self.world.writes())
            await self.world.one_pass()
            idle = idle + 1 if not moved and len(self.world.writes()) == before else 0
            if idle > swap.PROOF.total_seconds():
                return await self.world.status()
        raise AssertionError(f"still moving after {MANY_STEPS} steps: {self.world.writes()[-8:]}")

    async def ask_for(self, version: str, strategy: str = "HotSwap", **spec: Any) -> dict[str, Any]:
        """The user asks for a version; the status once all is quiet."""
        await self.world.apply(version=version, rollout={"strategy": strategy}, worker={"replicas": 2}, **spec)
        return await self.play()

    async def pods(self) -> set[str]:
        return {raw["metadata"]["uid"] for raw in await self.world.admin.list("Pod", self.world.namespace)}

    async def orders(self) -> set[str]:
        """The revisions that pods were told to load, by their annotations."""
        found = await self.world.admin.list("Pod", self.world.namespace)
        told = [raw["metadata"].get("annotations", {}).get(names.ANNOTATION_SWAP, "") for raw in found]
        return {order.partition(".")[0] for order in told}

    async def template(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.world.child("Deployment"))["spec"]["template"]
        return found

    async def live(self, template: str) -> dict[str, dict[str, Any]]:
        """The live documents of a template."""
        config_map = await self.world.child("ConfigMap", names.live_name("narrator", template))
        return {key: json.loads(text) for key, text in config_map["data"].items()}


@pytest.fixture
async def stage(world: World) -> Stage:
    world.now = datetime.now(UTC)  # the API server and the kubelets have the real time
    await world.admin.create(claim(world.namespace))
    return Stage(world)


async def test_a_good_version_takes_over_in_the_pods_that_run(stage: Stage) -> None:
    first = await stage.ask_for("v1")
    pods, template = await stage.pods(), await stage.template()

    status = await stage.ask_for("v2")

    assert (status["reason"], status["activeVersion"], status["ready"]) == ("Ready", "v2", "2/2")
    assert status["lastGoodRevision"] == status["targetRevision"] != first["targetRevision"]
    assert status["lastGoodTemplate"] == first["targetRevision"]
    assert status["rollout"]["strategy"] == "HotSwap"
    assert (await stage.pods(), await stage.template()) == (pods, template)
    live = await stage.live(first["targetRevision"])
    assert list(live) == ["current.json"]
    assert (live["current.json"]["version"], live["current.json"]["revision"]) == ("v2", status["targetRevision"])
    assert live["current.json"]["source"]["digest"].startswith("sha256:")


async def test_the_documents_come_before_the_order_and_the_status_before_both(stage: Stage) -> None:
    first = await stage.ask_for("v1")
    before = len(stage.world.writes())
    await stage.world.apply(version="v2", rollout={"strategy": "HotSwap"}, worker={"replicas": 2})

    await stage.world.one_pass()

    status = await stage.world.status()
    written = [write for write in stage.world.writes()[before:] if "events" not in write]
    assert written[:3] == [
        "update cosyvoicemodels/status narrator",
        f"patch configmaps narrator-{status['targetRevision']}",
        f"patch configmaps narrator-{first['targetRevision']}-live",
    ]
    assert written[3].startswith("patch pods narrator-")
    assert not [write for write in written if "deployments" in write]


@pytest.mark.long
async def test_a_swapped_model_needs_nothing_more(stage: Stage) -> None:
    await stage.ask_for("v1")
    await stage.ask_for("v2")
    before = stage.world.writes()

    for _ in range(3):
        await stage.world.one_pass()
    stage.restart()
    await stage.world.one_pass()

    assert stage.world.writes() == before


async def test_a_bad_version_leaves_everything_as_it_was_and_a_third_one_takes_over(stage: Stage) -> None:
    first = await stage.ask_for("v1")
    pods, template = await stage.pods(), await stage.template()
    good = await stage.ask_for("v2")

    status = await stage.ask_for("bad")

    assert (status["reason"], status["activeVersion"]) == ("RolledBack", "v2")
    (failure,) = status["failures"]
    assert (failure["version"], failure["reason"], failure["tensor"]) == ("bad", "MissingTensor", "lm.weight")
    (entry,) = status["quarantine"]
    assert (entry["version"], entry["revision"]) == ("bad", status["targetRevision"])
    live = await stage.live(first["targetRevision"])
    assert {key: document["version"] for key, document in live.items()} == {"current.json": "v2"}
    assert await stage.orders() == {good["targetRevision"]}
    assert (await stage.pods(), await stage.template()) == (pods, template)

    third = await stage.ask_for("v3")

    assert (third["reason"], third["activeVersion"]) == ("Ready", "v3")
    assert (await stage.pods(), await stage.template()) == (pods, template)


@pytest.mark.long
async def test_back_to_the_version_that_the_pods_were_made_for(stage: Stage) -> None:
    first = await stage.ask_for("v1")
    pods = await stage.pods()
    await stage.ask_for("v2")

    status = await stage.ask_for("v1")

    assert (status["reason"], status["activeRevision"]) == ("Ready", first["targetRevision"])
    assert "lastGoodTemplate" not in status
    assert await stage.pods() == pods


async def test_a_rolling_update_that_fails_after_a_swap_comes_back_to_the_swapped_pods(stage: Stage) -> None:
    await stage.ask_for("v1")
    swapped = await stage.ask_for("v2")
    pods, template = await stage.pods(), await stage.template()

    status = await stage.ask_for("bad", strategy="RollingUpdate")

    assert (status["reason"], status["activeVersion"]) == ("RolledBack", "v2")
    assert status["lastGoodTemplate"] == swapped["lastGoodTemplate"]
    assert (await stage.pods(), await stage.template()) == (pods, template)
    live = await stage.live(swapped["lastGoodTemplate"])
    assert {key: document["version"] for key, document in live.items()} == {"current.json": "v2"}


@pytest.mark.long
async def test_a_rolling_update_after_a_swap_makes_pods_of_its_own(stage: Stage) -> None:
    await stage.ask_for("v1")
    await stage.ask_for("v2")
    pods = await stage.pods()

    status = await stage.ask_for("v3", staging={"sizeLimit": "1Gi"})

    assert (status["reason"], status["activeVersion"]) == ("Ready", "v3")
    assert status["rollout"]["strategy"] == "RollingUpdate"
    assert "lastGoodTemplate" not in status
    assert pods & await stage.pods() == set()


@pytest.mark.long
async def test_a_live_config_map_goes_with_its_template(stage: Stage) -> None:
    first = await stage.ask_for("v1")
    await stage.world.apply(version="v2", rollout={"strategy": "Replace", "historyLimit": 0}, worker={"replicas": 2})

    status = await stage.play()

    assert (status["reason"], status["activeVersion"]) == ("Ready", "v2")
    left = {raw["metadata"]["name"] for raw in await stage.world.admin.list("ConfigMap", stage.world.namespace)}
    assert not [name for name in left if first["targetRevision"] in name]
    assert names.live_name("narrator", status["targetRevision"]) in left


async def test_other_bytes_under_a_version_that_serves_are_refused_by_what_was_written_down(stage: Stage) -> None:
    first = await stage.ask_for("v1", strategy="RollingUpdate")

    (document,) = (await stage.live(first["targetRevision"])).values()
    revision = await stage.world.child("ConfigMap", names.revision_name("narrator", first["targetRevision"]))

    assert document["source"]["digest"] == first["staged"]["digest"]
    assert revision["metadata"]["annotations"][names.ANNOTATION_DIGEST] == first["staged"]["digest"]
    assert json.loads(revision["data"]["model.json"])["source"]["digest"] is None

"""Each rule of the simulation is broken on purpose: by a door to the cluster that does not do what it is told."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from cosyvoice_operator import names
from tests.unit.operator.simulation.actions import Action
from tests.unit.operator.simulation.fake_cluster import FakeCluster
from tests.unit.operator.simulation.history import History
from tests.unit.operator.simulation.simulate import HistoryFailedError, run
from tests.unit.operator.simulation.store import MODEL, NAMESPACE, Object
from tests.unit.operator.simulation.world import Pace

BAD_THEN_GOOD = (
    Action("spec", ("version", "v2"), 1),
    Action("restart-rollout", ("1",), 120),
    Action("spec", ("worker.replicas", 3), 20),
    Action("spec", ("version", "v3"), 120),
)


def history(strategy: str) -> History:
    """v1 serves; v2 is corrupt; v3 is good."""
    return History(
        fates=(("v1", ("good",)), ("v2", ("corrupt",)), ("v3", ("good",))),
        spec=(("rollout.strategy", strategy),),
        actions=(Action("wait", (), 40), *BAD_THEN_GOOD),
        pace=Pace.EAGER,
    )


class Door(FakeCluster):
    """What the doors below need to know."""

    @property
    def status(self) -> Object:
        """The status as it stands."""
        model = self._store.get(names.KIND, MODEL)
        status: Object = (model or {}).get("status", {})
        return status


class PrunesWhatServes(Door):
    async def apply(self, manifest: Object, *, dry_run: bool = False) -> None:
        await super().apply(manifest, dry_run=dry_run)
        if active := self.status.get("activeRevision"):
            await self.delete("ConfigMap", NAMESPACE, names.revision_name(MODEL, active))


class PrunesTheLastGood(Door):
    """While no pod of it is ready."""

    async def apply(self, manifest: Object, *, dry_run: bool = False) -> None:
        await super().apply(manifest, dry_run=dry_run)
        good = self.status.get("lastGoodRevision")
        if manifest["kind"] == "Deployment" and good:
            for pod in self._store.all("Pod"):
                self._store.remove("Pod", pod["metadata"]["name"])
            await self.delete("ConfigMap", NAMESPACE, names.revision_name(MODEL, good))


class LosesTheStatus(Door):
    async def replace(self, manifest: Object, **_: Any) -> Object:
        return manifest


class RendersAgain(Door):
    async def apply(self, manifest: Object, *, dry_run: bool = False) -> None:
        if manifest["kind"] == "Deployment":
            template = manifest["spec"]["template"]
            worker = {**template["spec"]["containers"][0], "image": "worker:newer"}
            manifest = with_template(manifest, {**template, "spec": {**template["spec"], "containers": [worker]}})
        await super().apply(manifest, dry_run=dry_run)


class WritesOverRevisions(Door):
    async def apply(self, manifest: Object, *, dry_run: bool = False) -> None:
        await super().apply(manifest, dry_run=dry_run)
        if names.KEY_TEMPLATE in manifest.get("data", {}):
            await super().apply({**manifest, "data": {**manifest["data"], names.KEY_CONFIG: "{}"}})


class DeploysTheCondemned(Door):
    """Scaling gives the Deployment what the spec asks for."""

    async def apply(self, manifest: Object, *, dry_run: bool = False) -> None:
        wanted = self._store.get("ConfigMap", names.revision_name(MODEL, self.status.get("targetRevision", "")))
        if manifest["kind"] == "Deployment" and manifest["spec"]["replicas"] == 3 and wanted is not None:
            manifest = with_template(manifest, json.loads(wanted["data"][names.KEY_TEMPLATE]))
        await super().apply(manifest, dry_run=dry_run)


class LeavesForeignAnnotations(Door):
    async def overwrite(self, manifest: Object) -> None:
        """What is to make the template fit its old ReplicaSet again gets lost."""


class TellsOfReadinessTooSoon(Door):
    async def replace(self, manifest: Object, *, subresource: str | None = None) -> Object:
        conditions = [
            {**entry, "status": "True"} if entry["type"] == "Ready" else entry
            for entry in manifest["status"]["conditions"]
        ]
        status = {**manifest["status"], "conditions": conditions}
        return await super().replace({**manifest, "status": status}, subresource=subresource)


class PromotesTooSoon(Door):
    async def replace(self, manifest: Object, *, subresource: str | None = None) -> Object:
        status = {**manifest["status"], "lastGoodRevision": manifest["status"]["targetRevision"]}
        return await super().replace({**manifest, "status": status}, subresource=subresource)


class CondemnsTheGood(Door):
    async def replace(self, manifest: Object, *, subresource: str | None = None) -> Object:
        status = manifest["status"]
        entry = {"revision": status["targetRevision"], "version": status["targetVersion"], "reason": "Unschedulable"}
        return await super().replace({**manifest, "status": {**status, "quarantine": [entry]}}, subresource=subresource)


class NeverRests(Door):
    async def get(self, kind: str, _namespace: str, name: str) -> Object | None:
        if kind == "Service" and self._store.get(kind, name) is not None:
            await self.annotate(kind, NAMESPACE, name, annotations={"looked": str(self.writes)})
        return await super().get(kind, NAMESPACE, name)


class ForgetsDeployments(Door):
    async def apply(self, manifest: Object, *, dry_run: bool = False) -> None:
        if manifest["kind"] != "Deployment" or self._store.get("Deployment", MODEL) is None:
            await super().apply(manifest, dry_run=dry_run)


class MakesCurrentWhatNobodyTried(Door):
    async def apply(self, manifest: Object, *, dry_run: bool = False) -> None:
        data = manifest.get("data", {})
        if names.KEY_CANDIDATE in data:
            manifest = {**manifest, "data": {names.KEY_CURRENT: data[names.KEY_CANDIDATE]}}
        await super().apply(manifest, dry_run=dry_run)


class TellsEveryPodAtOnce(Door):
    async def annotate(self, kind: str, _namespace: str, name: str, **metadata: Any) -> None:
        await super().annotate(kind, NAMESPACE, name, **metadata)
        if kind == "Pod":
            self._after_write()
            for pod in self._store.all("Pod"):
                await super().annotate(kind, NAMESPACE, pod["metadata"]["name"], **metadata)


class OrdersWhatIsNotThere(Door):
    async def apply(self, manifest: Object, *, dry_run: bool = False) -> None:
        if not manifest["metadata"]["name"].endswith("-live"):
            await super().apply(manifest, dry_run=dry_run)


def with_template(deployment: Object, template: Object) -> Object:
    return {**deployment, "spec": {**deployment["spec"], "template": template}}


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("door", "rule", "strategy"),
    [
        (PrunesWhatServes, "the serving revision stays", "RollingUpdate"),
        (PrunesTheLastGood, "a named revision stays", "RollingUpdate"),
        (LosesTheStatus, "status comes first", "RollingUpdate"),
        (RendersAgain, "applied as stored", "RollingUpdate"),
        (WritesOverRevisions, "a revision never changes", "RollingUpdate"),
        (DeploysTheCondemned, "quarantine holds", "RollingUpdate"),
        (LeavesForeignAnnotations, "applied as stored", "RollingUpdate"),
        (TellsOfReadinessTooSoon, "Ready is the spec's version", "RollingUpdate"),
        (PromotesTooSoon, "good has served", "RollingUpdate"),
        (CondemnsTheGood, "others' faults condemn nobody", "RollingUpdate"),
        (NeverRests, "the operator comes to rest", "RollingUpdate"),
        (ForgetsDeployments, "what can serve serves", "RollingUpdate"),
        (MakesCurrentWhatNobodyTried, "pods start with what is proven", "HotSwap"),
        (TellsEveryPodAtOnce, "one pod first", "HotSwap"),
        (OrdersWhatIsNotThere, "an order names a document", "HotSwap"),
    ],
)
def test_a_broken_rule_is_told(door: type[FakeCluster], rule: str, strategy: str) -> None:
    with asyncio.Runner() as loop, pytest.raises(HistoryFailedError, match=f"^history: {rule}"):
        run(history(strategy), loop, door=door)


@pytest.mark.parametrize("strategy", ["RollingUpdate", "HotSwap"])
def test_the_same_history_through_an_honest_door_breaks_none(strategy: str) -> None:
    with asyncio.Runner() as loop:
        world = run(history(strategy), loop)

    assert (world.model or {})["status"]["reason"] == "Ready"
    assert len(list(world.served())) == 3


@pytest.mark.parametrize("strategy", ["RollingUpdate", "HotSwap"])
def test_what_failed_for_a_cause_that_passed_is_tried_again_and_serves(strategy: str) -> None:
    turned = (Action("wait", (), 40), Action("spec", ("version", "v2"), 400), Action("fate", ("v2", ("good",))))
    fates = (("v1", ("good",)), ("v2", ("slow",)))

    with asyncio.Runner() as loop:
        world = run(History(fates=fates, spec=(("rollout.strategy", strategy),), actions=turned), loop)

    assert "RolledBack" in world.story()
    assert (world.model or {})["status"]["reason"] == "Ready"

"""What an earlier release wrote is taken over as it stands: no pod is restarted, and one can come back to it."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cosyvoice_operator import names
from cosyvoice_operator.cluster import Cluster
from tests.apiserver.control_plane import ControlPlane
from tests.apiserver.episode import MODEL, Episode
from tests.apiserver.operator_process import eventually

CRD = Path(__file__).parents[2] / "crds" / "cosyvoicemodels.yaml"
FIXTURE = Path(__file__).parent / "fixtures" / "release-0.1.0.yaml"


class Upgrade:
    """A model of an earlier release, whose pods are ready; the operator of that release has ended."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.model, *self.children = yaml.safe_load_all(FIXTURE.read_text())

    @property
    def template(self) -> dict[str, Any]:
        """The pod template that the earlier release applied."""
        template: dict[str, Any] = self.children[-1]["spec"]["template"]
        return template

    async def write(self) -> None:
        """Write everything as the earlier release did, and wait for the pods."""
        await self.episode.apply(**self.model["spec"])
        model = await self.get(names.KIND)
        await self.episode.admin.replace({**model, "status": self.model["status"]}, subresource="status")
        for child in self.children:
            child["metadata"]["namespace"] = self.episode.namespace
            child["metadata"]["ownerReferences"][0]["uid"] = model["metadata"]["uid"]
            await self.episode.put(child)
        await self.episode.settle()
        assert len(await self.episode.pods()) == self.model["spec"]["worker"]["replicas"]

    async def get(self, kind: str) -> dict[str, Any]:
        found = await self.episode.admin.get(kind, self.episode.namespace, MODEL)
        assert found is not None
        return found

    async def reason(self) -> str:
        return str((await self.get(names.KIND))["status"]["reason"])


@pytest.fixture
async def upgrade(
    control_plane: ControlPlane, admin: Cluster, namespace: str, tmp_path: Path
) -> AsyncIterator[Upgrade]:
    async with Episode(control_plane, admin, f"{namespace}-1", tmp_path, {"v-bad": BAD}) as episode:
        upgrade = Upgrade(episode)
        await upgrade.write()
        yield upgrade


BAD = {"schema": 1, "reason": "MissingTensor", "phase": "Map", "file": "flow.pt", "message": "there is no tensor x"}


async def test_a_model_of_an_earlier_release_is_adopted_without_touching_its_pods(upgrade: Upgrade) -> None:
    before, pods = await upgrade.get("Deployment"), await upgrade.episode.pods()

    await upgrade.episode.start_operator()
    await upgrade.episode.settle()

    after = await upgrade.get("Deployment")
    assert after["spec"]["template"] == before["spec"]["template"]
    assert await upgrade.episode.pods() == pods
    status = (await upgrade.get(names.KIND))["status"]
    assert (status["reason"], status["lastGoodRevision"]) == ("Ready", upgrade.model["status"]["targetRevision"])


async def test_it_can_be_rolled_forward_and_back_to_what_the_earlier_release_stored(upgrade: Upgrade) -> None:
    before = await upgrade.get("Deployment")
    await upgrade.episode.start_operator()

    await upgrade.episode.apply(**{**upgrade.model["spec"], "version": "v1.3.0"})
    await upgrade.episode.settle()
    assert await upgrade.reason() == "Ready"
    assert (await upgrade.get("Deployment"))["spec"]["template"] != before["spec"]["template"]

    await upgrade.episode.apply(**upgrade.model["spec"])
    await upgrade.episode.settle()
    assert await upgrade.reason() == "Ready"
    assert (await upgrade.get("Deployment"))["spec"]["template"] == before["spec"]["template"]


async def test_a_bad_version_after_the_upgrade_costs_the_pods_of_the_earlier_release_nothing(upgrade: Upgrade) -> None:
    before, pods = await upgrade.get("Deployment"), await upgrade.episode.pods()
    await upgrade.episode.start_operator()

    await upgrade.episode.apply(**{**upgrade.model["spec"], "version": "v-bad"})
    await upgrade.episode.settle()

    assert await upgrade.reason() == "RolledBack"
    assert (await upgrade.get("Deployment"))["spec"]["template"] == before["spec"]["template"]
    assert await upgrade.episode.pods() == pods


@pytest.fixture
def newer_crd(control_plane: ControlPlane) -> Iterator[None]:
    """The CRD with one field more, which has a default; afterwards the CRD as it is."""
    crd = yaml.safe_load(CRD.read_text())
    newer = copy.deepcopy(crd)
    engine = newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["engine"]
    engine["properties"]["novelty"] = {"type": "string", "default": "off"}

    def install(manifest: dict[str, Any], served: bool) -> None:
        done = control_plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
        assert done.returncode == 0, done.stderr
        explain = ("explain", "cosyvoicemodel.spec.engine.novelty")
        eventually("the CRD to be served", lambda: (control_plane.kubectl(*explain).returncode == 0) == served)

    install(newer, served=True)
    yield
    install(crd, served=False)


async def test_a_field_that_a_newer_crd_adds_with_a_default_restarts_no_pod(upgrade: Upgrade, newer_crd: None) -> None:
    before, pods = await upgrade.get("Deployment"), await upgrade.episode.pods()
    assert (await upgrade.get(names.KIND))["spec"]["engine"]["novelty"] == "off"

    await upgrade.episode.start_operator()
    await upgrade.episode.settle()

    assert await upgrade.reason() == "Ready"
    assert (await upgrade.get("Deployment"))["spec"]["template"] == before["spec"]["template"]
    assert await upgrade.episode.pods() == pods

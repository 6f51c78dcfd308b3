"""The operator may die between any two writes; its successor ends up where it would have."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cosyvoice_operator import names
from cosyvoice_operator.errors import ClusterError
from tests.apiserver.dying_cluster import DyingCluster
from tests.apiserver.world import World

WRITES_OF_A_ROLLOUT = 8


async def die_after(world: World, writes: int) -> None:
    """A pass of an operator that gets so far; then a new operator that has forgotten everything."""
    world.restart(api=DyingCluster(world.api, writes))
    with suppress(ClusterError):
        await world.one_pass()
    world.restart()


@pytest.mark.parametrize("writes", range(WRITES_OF_A_ROLLOUT))
async def test_a_new_model_is_finished_by_the_successor(world: World, writes: int) -> None:
    await world.apply("undisturbed")
    await world.settle("undisturbed")
    await world.apply()

    await die_after(world, writes)
    await world.settle()

    assert len(await world.children()) == 8  # four of each model
    owners = {
        raw["metadata"]["ownerReferences"][0]["name"]
        for raw in await world.admin.list("ConfigMap", world.namespace, labels=names.LABEL_REVISION)
    }
    assert owners == {"undisturbed", "narrator"}
    assert (await world.status())["reason"] == (await world.status("undisturbed"))["reason"]


@pytest.mark.parametrize("writes", range(WRITES_OF_A_ROLLOUT))
async def test_an_update_is_finished_by_the_successor(world: World, writes: int) -> None:
    await world.apply()
    await world.settle()
    await world.report_rolled_out()
    await world.settle()
    await world.apply(version="v2")

    await die_after(world, writes)
    await world.settle()

    template = (await world.child("Deployment"))["spec"]["template"]
    assert template["metadata"]["labels"][names.LABEL_VERSION] == (await world.status())["targetVersion"] == "v2"
    assert len([child for child in await world.children() if child.startswith("ConfigMap/")]) == 2
    told = [text for text in await world.events() if "RolloutStarted" in text]
    assert len(told) <= 1

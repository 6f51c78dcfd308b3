"""What a list returns is compared with what would be applied, as what a get returns is."""

from __future__ import annotations

import pytest

from cosyvoice_operator import names
from tests.apiserver.world import World


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", names.KIND])
async def test_an_object_in_a_list_is_the_object_that_a_get_returns(world: World, kind: str) -> None:
    await world.apply()
    await world.settle()

    for listed in await world.api.list(kind, world.namespace):
        assert listed == await world.api.get(kind, world.namespace, listed["metadata"]["name"])

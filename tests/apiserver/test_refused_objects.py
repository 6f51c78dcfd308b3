"""What the API server does not take of what a model would come to, and what the model says of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.world import World


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"terms": []}}}}, "terms"),
        ({"dnsConfig": {"nameservers": "10.0.0.10"}}, "nameservers"),
    ],
    ids=["a field that there is not", "a field of another type"],
)
async def test_an_overlay_that_fits_no_pod_is_told(world: World, spec: dict[str, Any], field: str) -> None:
    await world.apply(worker={"podTemplate": {"spec": spec}})
    await world.settle()

    status = await world.status()

    assert status["reason"] == "InvalidSpec", status["message"]
    assert field in status["message"]

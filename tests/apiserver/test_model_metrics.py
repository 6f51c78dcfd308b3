"""What Prometheus is told of a model, from the first pass over it to its end."""

from __future__ import annotations

from cosyvoice_operator import metrics, names
from tests.apiserver.world import World, claim


def reasons(namespace: str) -> list[tuple[str, str]]:
    """The models of the namespace and their reasons, each series once."""
    (family,) = metrics.MODEL_REASON.collect()
    labels = [sample.labels for sample in family.samples if sample.labels["model_namespace"] == namespace]
    return [(one["model"], one["reason"]) for one in labels]


async def test_a_model_has_one_series_with_the_reason_of_its_status(world: World) -> None:
    await world.apply()
    await world.settle()
    assert reasons(world.namespace) == [("narrator", "SourceNotFound")]

    await world.admin.create(claim(world.namespace))
    await world.settle()
    reason = (await world.status())["reason"]
    assert reason != "SourceNotFound"
    assert reasons(world.namespace) == [("narrator", reason)]

    await world.admin.delete(names.KIND, world.namespace, "narrator")
    await world.one_pass()
    assert reasons(world.namespace) == []


async def test_a_model_whose_spec_cannot_be_read_counts_too(world: World) -> None:
    await world.apply(engine={"recycle": {"maxMemoryGrowth": "0"}})
    await world.one_pass()

    assert (await world.status())["reason"] == "InvalidSpec"
    assert reasons(world.namespace) == [("narrator", "InvalidSpec")]

"""What the operator tells Prometheus about its models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from cosyvoice_operator import metrics
from cosyvoice_operator.metrics import ModelCount

others: Counter[str] = Counter()
# Of nobody else: the series are those of the process.
NARRATOR, CRIER = ("counted", "narrator"), ("counted", "crier")


@pytest.fixture
def count() -> Iterator[ModelCount]:
    """The series are those of the process: what other tests left in them is not counted."""
    counted = ModelCount()
    others.clear()
    others.update(told())
    yield counted
    for key in (NARRATOR, CRIER):
        counted.set(key, None)


def reasons() -> dict[tuple[str, str], str]:
    """The one reason of each model; two series of one model would be an error."""
    (family,) = metrics.MODEL_REASON.collect()
    ours = [sample for sample in family.samples if sample.labels["model_namespace"] == "counted"]
    assert {sample.value for sample in ours} <= {1.0}
    keys = [(sample.labels["model_namespace"], sample.labels["model"]) for sample in ours]
    assert len(keys) == len(set(keys))
    return dict(zip(keys, (sample.labels["reason"] for sample in ours), strict=True))


def told() -> Counter[str]:
    (family,) = metrics.MODELS.collect()
    return Counter({sample.labels["reason"]: int(sample.value) for sample in family.samples})


def models() -> dict[str, int]:
    return dict(told() - others)


def test_models_are_counted_and_named_by_their_reason(count: ModelCount) -> None:
    count.set(NARRATOR, "Ready")
    count.set(CRIER, "Ready")

    assert models() == {"Ready": 2}
    assert reasons() == {NARRATOR: "Ready", CRIER: "Ready"}


def test_a_change_leaves_no_series_of_the_old_reason_behind(count: ModelCount) -> None:
    for reason in ("Staging", "Loading", "Ready", "Ready"):
        count.set(NARRATOR, reason)

    assert models() == {"Ready": 1}
    assert reasons() == {NARRATOR: "Ready"}


def test_a_model_that_is_gone_leaves_nothing(count: ModelCount) -> None:
    count.set(NARRATOR, "Ready")
    count.set(NARRATOR, None)
    count.set(CRIER, None)

    assert models() == {}
    assert reasons() == {}

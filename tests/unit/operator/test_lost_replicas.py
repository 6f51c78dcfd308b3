"""When a model that served at full count is called degraded, and when it only is not complete yet."""

from __future__ import annotations

import pytest

from cosyvoice_operator.api_status import Condition, Status
from cosyvoice_operator.assessment import Assessment
from cosyvoice_operator.observed import Observed
from tests.unit.operator.builders import assessed, flags, model, pod, ready_pod, target_of, workload

V1 = target_of(model())


def assess(observed: Observed, status: Status) -> Assessment:
    return assessed(model(status=status), observed)


def good(ready: str, target: str = V1, **conditions: str) -> Status:
    """The status of a model whose revision was good, with these conditions, and which wanted `target` last."""
    return Status(
        last_good_revision=V1,
        target_revision=target,
        ready=ready,
        conditions=tuple(
            Condition(
                type=name, status=value, reason="", message="", observed_generation=1, last_transition_time="2026"
            )
            for name, value in conditions.items()
        ),
    )


@pytest.mark.parametrize(
    ("status", "reason", "conditions"),
    [
        (good("2/2", Ready="True"), "ReplicasUnavailable", "PD"),  # a pod was lost just now
        (good("1/2", Ready="False", Degraded="True"), "ReplicasUnavailable", "PD"),  # and is not back yet
        (good("1/1", Ready="True"), "Staging", "P"),  # scaled up just now
        (good("1/2", Ready="False", Degraded="False"), "Staging", "P"),  # and not there yet
        (Status(), "Staging", "P"),  # never was good
        (good("1/2", "other", Ready="False", Degraded="True"), "Staging", "P"),  # back from a version that failed
    ],
)
def test_losing_a_replica_degrades_and_wanting_one_more_does_not(status: Status, reason: str, conditions: str) -> None:
    observed = Observed(
        workload=workload(V1, 2, total=2, updated=2, ready=1, available=1), pods=(ready_pod(V1), pod(V1, "b"))
    )

    verdict = assess(observed, status)

    assert (verdict.reason, flags(verdict)) == (reason, conditions)


def test_going_back_to_what_still_serves_loses_nothing() -> None:
    observed = Observed(
        workload=workload(V1, 1, total=2, updated=1, ready=1, available=1), pods=(ready_pod(V1), pod("bad", "b"))
    )

    verdict = assess(observed, good("1/1", Ready="False", Degraded="True"))

    assert (verdict.reason, flags(verdict)) == ("RollingOut", "P")


def test_pods_that_are_too_many_are_no_loss() -> None:
    """As when the pods are restarted with one in surge, or a failed update is taken back."""
    observed = Observed(
        workload=workload(V1, 2, total=3, updated=1, ready=2, available=2),
        pods=(ready_pod(V1), ready_pod(V1, "b"), pod(V1, "c")),
    )

    verdict = assess(observed, good("2/2", Ready="True"))

    assert (verdict.reason, flags(verdict)) == ("Staging", "P")

"""A rollout for which there is no room: it waits, makes room or stalls as asked, and never counts against a version."""

from __future__ import annotations

from dataclasses import replace as altered
from datetime import datetime, timedelta
from typing import Any

import pytest

from cosyvoice_operator import rollout, status
from cosyvoice_operator.api_status import RolloutRecord, Status
from cosyvoice_operator.desired import desired
from cosyvoice_operator.observed import Observed, Pod, ReplicaSet
from cosyvoice_operator.rollout import Decision
from tests.unit.operator.builders import (
    POLICY,
    START,
    ended_container,
    flags,
    model,
    pod,
    ready_pod,
    serving,
    stored,
    target_of,
    workload,
)

V1, V2 = target_of(model()), target_of(model(version="v2"))
SERVED_V1 = Status(active_revision=V1, active_version="v1", last_good_revision=V1, target_revision=V1)
NO_CPU = "0/2 nodes are available: 2 Insufficient cpu."
NO_NODE = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
QUOTA = 'pods "x" is forbidden: exceeded quota: small, requested: pods=1'
REFUSED = 'pods "x" is forbidden: violates PodSecurity "restricted:latest"'
WAITED = START + timedelta(seconds=20)


def crowded(words: str = NO_CPU, create_failure: str | None = None) -> Observed:
    """The pod of v2 does not find a place beside the two of v1; or a quota allows none."""
    waits = pod(V2, "new", version="v2", node=None, scheduled=None, unschedulable=words)
    news: tuple[Pod, ...] = () if create_failure else (waits,)
    failure = {"create_failure": create_failure, "create_failure_since": START} if create_failure else {}
    return Observed(
        revisions=(stored(V2, version="v2"), stored(V1, age=60)),
        workload=workload(V2, 2, total=3, updated=1, ready=2, available=2, **failure),
        replica_sets=(ReplicaSet(revision=V1, replicas=2), ReplicaSet(revision=V2, replicas=1)),
        pods=(ready_pod(V1, "old-0"), ready_pod(V1, "old-1"), *news),
    )


def decide(observed: Observed, now: datetime = WAITED, before: Status = SERVED_V1, **choice: Any) -> Decision:
    return rollout.decide(model(status=before, version="v2", rollout=choice), observed, POLICY, now)


def surge_and_unavailable(observed: Observed, decision: Decision, **choice: Any) -> tuple[int, int]:
    """How the Deployment replaces pods after this pass."""
    asked = model(status=SERVED_V1, version="v2", rollout=choice)
    found = {one["kind"]: one for one in desired(asked, observed, decision, POLICY)}
    rolling = found["Deployment"]["spec"]["strategy"]["rollingUpdate"]
    return rolling["maxSurge"], rolling["maxUnavailable"]


@pytest.mark.parametrize(
    ("observed", "reason"),
    [
        (crowded(), "NoCapacity"),
        (crowded(NO_NODE), "NoCapacity"),
        (crowded(create_failure=QUOTA), "NoCapacity"),
        (crowded(create_failure=REFUSED), "FailedCreate"),
        (altered(crowded(), replica_sets=()), "Unschedulable"),  # the first version: there is nothing to make room
    ],
)
def test_want_of_room_beside_an_old_version_has_a_name(observed: Observed, reason: str) -> None:
    assert decide(observed).assessment.reason == reason


def test_a_moment_without_room_is_not_yet_a_want() -> None:
    assert decide(crowded(), WAITED - timedelta(seconds=1)).assessment.reason == "Unschedulable"


@pytest.mark.parametrize(
    ("choice", "conditions", "then"),
    [
        ("Wait", "P", "it is rolled out as soon as there is room"),
        ("Replace", "P", "a replica of the version that serves makes room for it"),
        ("Fail", "S", "make room for one more, or choose another spec.rollout.onNoCapacity"),
    ],
)
def test_what_happens_without_room_is_the_users_choice(choice: str, conditions: str, then: str) -> None:
    decision = decide(crowded(), onNoCapacity=choice)

    assert (decision.template, flags(decision.assessment)) == (V2, conditions)
    assert decision.assessment.message == f"v2: no node takes the pod: {NO_CPU} (pod new); {then}"


@pytest.mark.parametrize("choice", ["Wait", "Replace", "Fail"])
@pytest.mark.parametrize("observed", [crowded(), crowded(NO_NODE), crowded(create_failure=QUOTA)])
def test_want_of_room_never_condemns(choice: str, observed: Observed) -> None:
    for late in (
        observed,
        altered(observed, workload=altered(observed.workload or workload(V2), deadline_exceeded=True)),
    ):
        decision = decide(late, WAITED + timedelta(days=1), onNoCapacity=choice)

        assert (decision.template, decision.quarantine) == (V2, ())


@pytest.mark.parametrize(
    ("observed", "choice", "expected"),
    [
        (crowded(), "Wait", (1, 0)),
        (crowded(), "Fail", (1, 0)),
        (crowded(), "Replace", (0, 1)),
        (crowded(create_failure=QUOTA), "Replace", (0, 1)),
        (crowded(NO_NODE), "Replace", (1, 0)),  # one pod less would help nobody
    ],
)
def test_a_pod_goes_first_only_where_that_makes_room(
    observed: Observed, choice: str, expected: tuple[int, int]
) -> None:
    decision = decide(observed, onNoCapacity=choice)

    assert surge_and_unavailable(observed, decision, onNoCapacity=choice) == expected


def replacing(strategy: str = "Replace") -> Status:
    """The status of a rollout of v2 for which an old pod went first."""
    record = RolloutRecord(revision=V2, strategy=strategy, attempt=2, started_at="2026-11-30T12:00:00Z")
    return Status(
        **{name: getattr(SERVED_V1, name) for name in ("active_revision", "last_good_revision")}, rollout=record
    )


def test_a_rollout_that_makes_room_goes_on_so_and_so_does_the_way_back() -> None:
    """With one pod more than there is room for, the way back would wait for the pod that failed, and that for it."""
    going = altered(crowded(), pods=(ready_pod(V1, "old-0"), pod(V2, "new", version="v2")))
    failed = altered(going, pods=(*going.pods[:1], pod(V2, "new", version="v2", stage=ended_container(65))))

    onward, back = (decide(seen, before=replacing(), onNoCapacity="Replace") for seen in (going, failed))

    assert [(one.template, one.rollout.strategy) for one in (onward, back) if one.rollout] == [
        (V2, "Replace"),
        (V1, "Replace"),
    ]
    assert surge_and_unavailable(failed, back, onNoCapacity="Replace") == (0, 1)


def test_the_next_rollout_begins_with_one_pod_more_again() -> None:
    asked = model(status=replacing(), version="v3", rollout={"onNoCapacity": "Replace"})

    decision = rollout.decide(asked, serving(V1), POLICY, START)

    assert decision.rollout is not None
    assert (decision.rollout.strategy, decision.rollout.attempt) == ("RollingUpdate", 3)


def test_a_choice_that_is_taken_back_counts_at_once() -> None:
    decision = decide(crowded(), before=replacing(), onNoCapacity="Wait")

    assert decision.rollout is not None
    assert (decision.rollout.strategy, decision.rollout.attempt) == ("RollingUpdate", 2)


def test_the_strategy_replace_needs_no_want_of_room() -> None:
    decision = rollout.decide(
        model(status=SERVED_V1, version="v2", rollout={"strategy": "Replace"}), serving(V1), POLICY, START
    )

    assert decision.rollout is not None
    assert decision.rollout.strategy == "Replace"


def test_the_record_is_the_same_after_another_pass() -> None:
    asked = model(status=SERVED_V1, version="v2", rollout={"onNoCapacity": "Replace"})
    first = status.report(asked, crowded(), rollout.decide(asked, crowded(), POLICY, WAITED), WAITED)
    again = altered(asked, status=first)

    assert status.report(again, crowded(), rollout.decide(again, crowded(), POLICY, WAITED), WAITED) == first

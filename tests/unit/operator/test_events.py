"""Which Events go with which change of the status."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

from cosyvoice_operator import events, rollout, status
from cosyvoice_operator.api_status import Quarantined, Status
from cosyvoice_operator.observed import NameConflict, Observed, ReplicaSet
from tests.unit.operator.builders import (
    POLICY,
    START,
    ended_container,
    model,
    pod,
    ready_pod,
    serving,
    staged_container,
    stored,
    target_of,
    workload,
)

V1 = target_of(model())
V2 = target_of(model(version="v2"))


def step(observed: Observed, before: Status, **spec: Any) -> tuple[Status, list[str]]:
    """One pass: the status it writes and the events it sends."""
    asked = model(status=before, **spec)
    decision = rollout.decide(asked, observed, POLICY, START)
    after = status.report(asked, observed, decision, START)
    sent = events.between(asked.status, after, created=decision.create)
    return after, [f"{event.type} {event.reason}: {event.message}" for event in sent]


def test_the_first_rollout_tells_its_story_once() -> None:
    nothing = Observed()
    staging = Observed(revisions=(stored(V1),), workload=workload(V1), pods=(pod(V1),))
    loading = Observed(
        revisions=(stored(V1),),
        workload=workload(V1),
        pods=(pod(V1, stage=staged_container(digest="sha256:00", bytes=7, elapsed_seconds=0.5)),),
    )
    told: list[str] = []
    current = Status()
    for observed in (nothing, nothing, staging, staging, loading, loading, serving(V1), serving(V1)):
        current, said = step(observed, current)
        told += said

    assert told == [
        f"Normal RevisionCreated: v1 (revision {V1}) was created",
        "Normal StagingStarted: v1: 0 of 2 replicas ready; narrator-a on node1 stages the weights",
        f"Normal WeightsStaged: v1 (revision {V1}): sha256:00: 7 bytes in 0.5 s",
        f"Normal VersionReady: v1 (revision {V1}) serves (2/2)",
    ]


def test_an_update_says_what_replaces_what() -> None:
    before, _ = step(serving(V1), Status())

    _, told = step(serving(V1), before, version="v2")

    assert told == [
        f"Normal RevisionCreated: v2 (revision {V2}) was created",
        f"Normal RolloutStarted: v2 (revision {V2}) replaces v1 (revision {V1})",
    ]


def test_going_back_makes_no_revision_but_is_a_rollout() -> None:
    before, _ = step(serving(V2, revisions=(stored(V2), stored(V1))), Status(), version="v2")

    _, told = step(serving(V2, revisions=(stored(V2), stored(V1))), before)

    assert told == [f"Normal RolloutStarted: v1 (revision {V1}) is rolled out again"]


def test_a_failure_is_told_once_however_often_the_container_is_restarted() -> None:
    def crashed(restarts: int) -> Observed:
        worker = ended_container(
            66, restarts=restarts, reason="MissingTensor", tensor="lm.weight", message="is missing"
        )
        return Observed(revisions=(stored(V1),), workload=workload(V1), pods=(pod(V1, worker=worker),))

    before, first = step(crashed(0), Status(target_revision=V1))
    _, second = step(crashed(1), before)

    assert first == ["Warning LoadFailed: v1: MissingTensor: is missing (tensor lm.weight, pod narrator-a, node node1)"]
    assert second == []


def test_trouble_has_its_events() -> None:
    conflict = NameConflict(kind="Service", namespace="speech", name="narrator")
    full_cluster = Observed(
        revisions=(stored(V1),), workload=workload(V1), pods=(pod(V1, node=None, unschedulable="no cpu"),)
    )
    start = Status(target_revision=V1)

    _, taken = step(Observed(conflicts=(conflict,)), start)
    _, refused = step(Observed(refusal="Deployment narrator is refused"), start)
    before, no_room = step(full_cluster, start)
    _, still_no_room = step(full_cluster, before)

    assert [text.split(":")[0] for text in taken] == ["Warning NameConflict"]
    assert refused == ["Warning InvalidSpec: Deployment narrator is refused"]
    assert no_room == ["Warning InsufficientCapacity: v1: no node takes the pod: no cpu (pod narrator-a)"]
    assert still_no_room == []


def test_a_rollback_is_told_once_from_the_failure_to_the_next_try() -> None:
    both = (stored(V2, version="v2"), stored(V1, age=60))
    new = pod(V2, "new", version="v2", stage=ended_container(65, reason="TruncatedFile", message="is cut off"))
    failing = Observed(revisions=both, workload=workload(V2, 1, total=2, updated=1), pods=(ready_pod(V1, "old"), new))
    stopping = Observed(revisions=both, workload=workload(V1, 1, total=2, updated=1), pods=failing.pods)
    back = serving(V1, 1, revisions=both)
    current, _ = step(serving(V1, 1), Status(), worker={"replicas": 1})
    told: list[str] = []
    for observed in (back, failing, failing, stopping, back, back):
        current, said = step(observed, current, version="v2", worker={"replicas": 1})
        told += [text.split(": ")[0] for text in said]
    retried = dataclasses.replace(model(status=current, version="v2", worker={"replicas": 1}), retry="1")
    decision = rollout.decide(retried, back, POLICY, START)
    after = status.report(retried, back, decision, START)

    assert told == [
        "Normal RolloutStarted",
        "Warning RollingBack",
        "Warning LoadFailed",
        "Normal RolledBack",
    ]
    assert [event.message for event in events.between(current, after, created=False)] == [
        f"v2 (revision {V2}) is tried again"
    ]


def test_a_version_in_quarantine_that_is_asked_for_again_is_not_called_rolled_out() -> None:
    entry = Quarantined(revision=V2, version="v2", reason="Crashed", message="m", since="2026-11-30T12:00:00Z")
    before = Status(last_good_revision=V1, active_revision=V1, target_revision=V1, quarantine=(entry,))
    going = Observed(revisions=(stored(V2), stored(V1)), workload=workload(V1, 2, total=3, updated=2))

    _, told = step(going, before, version="v2")

    assert [text.split(": ")[0] for text in told] == ["Warning RollingBack"]


def test_want_of_room_is_told_once_by_whatever_name() -> None:
    waits = pod(V2, "new", version="v2", node=None, scheduled=None, unschedulable="2 Insufficient cpu")
    crowded = Observed(
        revisions=(stored(V2), stored(V1)),
        workload=workload(V2, 1, total=2, updated=1),
        replica_sets=(ReplicaSet(revision=V1, replicas=1),),
        pods=(ready_pod(V1, "old"), waits),
    )
    asked = model(status=Status(last_good_revision=V1, target_revision=V2), version="v2")
    reasons, told = [], []
    for seconds in (0, 20, 40):
        now = START + timedelta(seconds=seconds)
        after = status.report(asked, crowded, rollout.decide(asked, crowded, POLICY, now), now)
        told += [event.reason for event in events.between(asked.status, after, created=False)]
        reasons.append(after.reason)
        asked = dataclasses.replace(asked, status=after)

    assert reasons == ["Unschedulable", "NoCapacity", "NoCapacity"]
    assert told == ["InsufficientCapacity"]


def test_a_pin_is_told_when_it_is_set() -> None:
    before, _ = step(serving(V2, revisions=(stored(V2), stored(V1))), Status(), version="v2")
    pinned = dataclasses.replace(model(status=before, version="v2"), rollback_to=V1)
    observed = serving(V2, revisions=(stored(V2), stored(V1)))
    after = status.report(pinned, observed, rollout.decide(pinned, observed, POLICY, START), START)

    told = [f"{event.type} {event.reason}: {event.message}" for event in events.between(before, after, created=False)]

    assert told == [
        f"Normal RolloutStarted: v1 (revision {V1}) is rolled out again",
        f"Normal Pinned: v1 (revision {V1}) is pinned by the annotation rollback-to",
    ]

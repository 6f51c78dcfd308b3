"""A version that fails: it is put into quarantine, and the last good one takes its place as it was stored."""

from __future__ import annotations

from dataclasses import replace as altered
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from cosyvoice_operator.api_status import Quarantined, Status
from cosyvoice_operator.observed import Container, Ended, Observed, ReplicaSet
from tests.unit.operator.builders import (
    START,
    ended_container,
    flags,
    full,
    pod,
    serving,
    staged_container,
    stored,
    workload,
)
from tests.unit.operator.failing_version import (
    BOTH,
    CORRUPT,
    CRASHED,
    LATER,
    OLD,
    SERVED_V1,
    STAGED,
    TOLD,
    V1,
    V2,
    after,
    asked,
    back,
    condemned,
    decide,
    trying,
)


def test_a_failed_version_goes_into_quarantine_and_the_last_good_one_is_put_back() -> None:
    decision = decide(asked(SERVED_V1), trying())

    assert (decision.target, decision.template, decision.create) == (V2, V1, False)
    assert decision.quarantine == (
        Quarantined(revision=V2, version="v2", reason="TruncatedFile", message=TOLD, since="2026-11-30T12:00:00Z"),
    )
    assert (decision.assessment.reason, flags(decision.assessment)) == ("RollingBack", "PSD")
    assert (decision.active_revision, decision.last_good) == (V1, V1)


def test_the_whole_way_back_step_by_step() -> None:
    """Each step: what is seen; the template, the reason, the flags, and whether RolledBack holds."""
    stopping = Observed(revisions=BOTH, workload=workload(V1, 2, total=3, updated=2, available=2), pods=trying().pods)
    steps: list[tuple[Observed, tuple[object, ...]]] = [
        (trying(), (V1, "RollingBack", "PSD", False)),
        (trying(), (V1, "RollingBack", "PSD", False)),  # the operator died before it had put v1 back
        (stopping, (V1, "RollingBack", "PSD", False)),
        (back(), (V1, "RolledBack", "SD", True)),
        (back(), (V1, "RolledBack", "SD", True)),
        (back(workload=workload(V1, 2, total=2, updated=2), pods=OLD[:1]), (V1, "RolledBack", "SD", True)),
    ]
    current = SERVED_V1
    for observed, expected in steps:
        decision = decide(asked(current), observed)
        verdict = decision.assessment
        assert (decision.template, verdict.reason, flags(verdict), verdict.rolled_back) == expected
        current = after(asked(current), observed)
    assert current.message == (
        f"v2 failed: TruncatedFile: {TOLD}; it is not tried again; v1 serves with 0 of 2 replicas"
    )
    assert [(entry.revision, entry.attempts) for entry in current.quarantine] == [(V2, 1)]
    assert [(record.revision, record.reason) for record in current.failures] == [(V2, "TruncatedFile")]


@pytest.mark.parametrize(
    ("stage", "worker", "falls"),
    [
        (ended_container(69, restarts=9), Container(), False),
        (ended_container(71), Container(), False),
        (staged_container(), ended_container(139, restarts=2), False),
        (staged_container(), ended_container(139, restarts=3), True),
        (staged_container(), ended_container(72, restarts=3), True),
        (staged_container(), ended_container(70), True),
        (staged_container(), ended_container(66), True),
        (Container(waiting_reason="ErrImagePull"), Container(), False),
        (Container(waiting_reason="CreateContainerConfigError"), Container(), False),
        (Container(running=True), Container(), False),
        (staged_container(), Container(running=True), False),
    ],
)
def test_only_what_counts_condemns(stage: Container, worker: Container, falls: bool) -> None:
    decision = decide(asked(SERVED_V1), trying(stage, worker))

    assert decision.template == (V1 if falls else V2)
    assert bool(decision.quarantine) == falls


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rollout": {"automaticRollback": False}}, "TruncatedFile"),
        ({"paused": True}, "TruncatedFile"),
    ],
)
def test_where_nothing_may_be_moved_the_failure_is_only_told(change: dict[str, Any], reason: str) -> None:
    for before in (SERVED_V1, condemned()):
        decision = decide(asked(before, **change), trying())

        assert (decision.template, decision.assessment.reason, flags(decision.assessment)) == (V2, reason, "SD")
        assert decision.fallen is None
        assert "nothing is rolled back" in decision.assessment.message


@pytest.mark.parametrize("last_good", [None, "gone"])
def test_without_a_version_to_go_back_to_the_new_one_stays(last_good: str | None) -> None:
    decision = decide(asked(replace(SERVED_V1, last_good_revision=last_good)), trying())

    assert (decision.template, decision.quarantine) == (V2, ())
    assert (decision.assessment.reason, flags(decision.assessment)) == ("NoPreviousVersion", "SD")


def test_a_version_that_was_good_is_never_rolled_back() -> None:
    failing = Observed(revisions=(stored(V1),), workload=workload(V1, 2, total=2), pods=(pod(V1, worker=CRASHED),))

    decision = decide(asked(SERVED_V1, version="v1"), failing)

    assert (decision.template, decision.quarantine) == (V1, ())
    assert (decision.assessment.reason, flags(decision.assessment)) == ("Crashed", "SD")


def test_other_weights_under_a_good_version_are_told_as_such() -> None:
    other = pod(V1, stage=ended_container(65, reason="DigestMismatch"))
    failing = Observed(revisions=(stored(V1),), workload=workload(V1, 2, total=2), pods=(other, OLD[0]))

    assert decide(asked(SERVED_V1, version="v1"), failing).assessment.reason == "SourceChanged"


def test_a_failed_version_is_taken_out_even_where_the_spec_is_unusable_by_now() -> None:
    unusable = {"source": {"uri": "hostpath:///etc"}}
    first = asked(SERVED_V1, **unusable)
    decision = decide(first, trying())

    assert (decision.template, decision.assessment.reason) == (V1, "InvalidSpec")
    assert decide(asked(after(first, trying()), **unusable), trying()).template == V1


def test_the_restored_version_failing_too_stops_everything() -> None:
    failing = Observed(revisions=BOTH, workload=workload(V1, 2, total=2), pods=(pod(V1, worker=CRASHED), OLD[0]))

    decision = decide(asked(condemned(retry_after="2026-11-30T11:00:00Z")), failing)

    assert (decision.template, decision.assessment.reason) == (V1, "RollbackFailed")
    assert flags(decision.assessment) == "SD"
    assert not decision.assessment.rolled_back


def test_a_deployment_that_was_deleted_after_a_rollback_comes_back_with_the_good_version() -> None:
    assert decide(asked(condemned()), Observed(revisions=BOTH)).template == V1


def test_without_anything_stored_a_quarantined_version_is_not_tried_either() -> None:
    decision = decide(asked(condemned()), Observed(revisions=BOTH[:1]))

    assert (decision.template, decision.assessment.reason) == (None, "RollbackFailed")


def test_a_pod_that_is_not_ready_in_time_after_staging_condemns_its_version() -> None:
    loading = trying(STAGED, Container(running=True))

    early, late = (decide(asked(SERVED_V1), loading, START + timedelta(seconds=seconds)) for seconds in (600, 601))

    assert (early.template, late.template) == (V2, V1)
    assert late.quarantine[0].reason == "ProgressDeadlineExceeded"
    assert late.quarantine[0].retry_after == "2026-11-30T12:20:01Z"


def test_a_node_whose_clock_is_behind_makes_no_pod_late() -> None:
    long_ago = Container(ended=Ended(exit_code=0, reason="Completed", finished_at=START - timedelta(minutes=11)))

    assert decide(asked(SERVED_V1), trying(long_ago, Container(running=True))).template == V2


def test_staging_may_take_its_time() -> None:
    assert decide(asked(SERVED_V1), trying(Container(running=True)), LATER).template == V2


@pytest.mark.parametrize(
    "stage", [ended_container(69, restarts=2), Container(waiting_reason="ImagePullBackOff", waiting_message="no")]
)
def test_what_may_pass_by_itself_condemns_at_the_deadline(stage: Container) -> None:
    assert decide(asked(SERVED_V1), trying(stage)).template == V2
    decision = decide(asked(SERVED_V1), trying(stage), LATER)
    assert decision.template == V1
    assert decision.quarantine[0].retry_after is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"lost": "Evicted"},
        {"node": None, "scheduled": None, "unschedulable": "0/2 nodes are available: 2 Insufficient cpu."},
        {"mount_failure": "no such secret"},
        {"node_down": "node1: Kubelet stopped posting node status.", "stage": CORRUPT},
        {
            "node_down": "node1: Kubelet stopped posting node status.",
            "stage": STAGED,
            "worker": Container(running=True),
        },
        {"stage": Container(waiting_reason="CreateContainerConfigError")},
    ],
)
def test_what_others_do_never_condemns_however_long_it_takes(fields: dict[str, Any]) -> None:
    exceeded = altered(trying().workload or full(V2), deadline_exceeded=True)
    observed = altered(trying(), workload=exceeded, pods=(*OLD, pod(V2, "new", version="v2", **fields)))

    assert decide(asked(SERVED_V1), observed, LATER).template == V2


def test_the_rollout_is_recorded_and_counted() -> None:
    current, seen = Status(), []
    for observed, version in (
        (Observed(), "v1"),
        (serving(V1), "v1"),
        (serving(V1), "v2"),
        (trying(), "v2"),
        (back(), "v2"),
    ):
        current = after(asked(current, version=version), observed)
        assert current.rollout is not None
        seen.append((current.rollout.revision, current.rollout.attempt))

    assert seen == [(V1, 1), (V1, 1), (V2, 2), (V1, 3), (V1, 3)]


def test_replica_sets_that_want_pods_keep_their_revision() -> None:
    sets = (ReplicaSet(revision="r1", replicas=1), ReplicaSet(revision="r2", replicas=0))
    observed = serving(V1, revisions=(stored(V1), stored("r1"), stored("r2")), replica_sets=sets)

    assert decide(asked(SERVED_V1, version="v1", rollout={"historyLimit": 0}), observed).prune == ("r2",)

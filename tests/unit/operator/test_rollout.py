"""Which revision has to run, what has to be made and removed, and when to look again."""

from __future__ import annotations

from typing import Any

import pytest

from cosyvoice_operator import rollout
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.observed import Container, NameConflict, Observed, ReplicaSet
from cosyvoice_operator.revision import Policy
from cosyvoice_operator.rollout import ASK_AGAIN_SECONDS, LOOK_AGAIN_SECONDS, Decision
from tests.unit.operator.builders import (
    POLICY,
    START,
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
SERVED_V1 = Status(active_revision=V1, active_version="v1", last_good_revision=V1, target_revision=V1)
FOREIGN = NameConflict(kind="Service", namespace="speech", name="narrator")
LOADING = {"stage": staged_container(), "worker": Container(running=True)}


def decide(observed: Observed, status: Status | None = None, policy: Policy = POLICY, **spec: Any) -> Decision:
    return rollout.decide(model(status=status, **spec), observed, policy, START)


def test_a_new_model_gets_its_revision_and_deployment() -> None:
    decision = decide(Observed())

    assert (decision.target, decision.template, decision.create) == (V1, V1, True)
    assert (decision.active_revision, decision.last_good) == (None, None)


def test_a_model_that_serves_needs_nothing() -> None:
    decision = decide(serving(V1), SERVED_V1)

    assert (decision.template, decision.create, decision.prune, decision.look_again) == (V1, False, (), None)


def test_a_whole_update_step_by_step() -> None:
    """Each step: what is seen; the revision deployed, the reason, who is active, who was good, when to look again."""
    both = (stored(V2, version="v2"), stored(V1, age=60))
    old = (ready_pod(V1, "old-0"), ready_pod(V1, "old-1"))
    new = ready_pod(V2, "new-0", version="v2")
    steps: list[tuple[Observed, tuple[object, ...]]] = [
        (serving(V1), (V2, "Creating", V1, V1, LOOK_AGAIN_SECONDS)),
        (
            Observed(revisions=both, workload=workload(V2, 2, total=2, ready=2), pods=old),
            (V2, "Creating", V1, V1, LOOK_AGAIN_SECONDS),
        ),
        (
            Observed(revisions=both, workload=workload(V2, 2, total=3, updated=1), pods=(*old, pod(V2, "new-0"))),
            (V2, "Staging", V1, V1, LOOK_AGAIN_SECONDS),
        ),
        (
            Observed(
                revisions=both,
                workload=workload(V2, 2, total=3, updated=1),
                pods=(*old, pod(V2, "new-0", **LOADING)),
            ),
            (V2, "Loading", V1, V1, ASK_AGAIN_SECONDS),
        ),
        (
            Observed(revisions=both, workload=workload(V2, 2, total=3, updated=1, available=3), pods=(*old, new)),
            (V2, "RollingOut", V1, V1, LOOK_AGAIN_SECONDS),
        ),
        (
            Observed(
                revisions=both,
                workload=workload(V2, 2, total=2, updated=2, available=1),
                pods=(new, pod(V2, "new-1", version="v2", **LOADING)),
            ),
            (V2, "Loading", V2, V1, ASK_AGAIN_SECONDS),
        ),
        (serving(V2, revisions=both), (V2, "Ready", V2, V2, None)),
    ]
    status = SERVED_V1
    for observed, expected in steps:
        decision = decide(observed, status, version="v2")
        seen = (
            decision.template,
            decision.assessment.reason,
            decision.active_revision,
            decision.last_good,
            decision.look_again,
        )
        assert seen == expected
        status = Status(
            active_revision=decision.active_revision,
            active_version=decision.active_version,
            last_good_revision=decision.last_good,
            target_revision=decision.target,
        )


def test_going_back_to_an_earlier_spec_uses_the_stored_revision() -> None:
    decision = decide(serving(V2, revisions=(stored(V2), stored(V1, age=60))), SERVED_V1)

    assert (decision.template, decision.create) == (V1, False)


def test_a_spec_that_is_edited_in_mid_rollout_is_followed_at_once() -> None:
    observed = Observed(revisions=(stored(V2), stored(V1)), workload=workload(V2, 2, total=3, updated=1))

    decision = decide(observed, SERVED_V1, version="v3")

    assert decision.template == decision.target == target_of(model(version="v3"))
    assert decision.create


def test_a_paused_model_keeps_what_runs() -> None:
    decision = decide(serving(V1), SERVED_V1, version="v2", paused=True)

    assert (decision.target, decision.template, decision.create) == (V2, V1, False)
    assert decision.assessment.reason == "Paused"


def test_a_paused_model_whose_deployment_was_deleted_gets_it_back() -> None:
    decision = decide(Observed(revisions=(stored(V1),)), SERVED_V1, version="v2", paused=True)

    assert decision.template == V1


def test_a_new_model_that_is_paused_gets_nothing() -> None:
    decision = decide(Observed(), paused=True)

    assert (decision.template, decision.create, decision.assessment.reason) == (None, False, "Paused")


def test_a_paused_model_that_serves_its_spec_is_ready() -> None:
    assert decide(serving(V1), SERVED_V1, paused=True).assessment.reason == "Ready"


def test_a_paused_model_gets_the_revision_back_that_its_pods_mount() -> None:
    decision = decide(serving(V1, revisions=()), SERVED_V1, paused=True)

    assert (decision.template, decision.create) == (V1, True)


@pytest.mark.parametrize("paused", [False, True])
def test_a_spec_that_is_not_allowed_keeps_what_runs_and_says_so(paused: bool) -> None:
    decision = decide(serving(V1), SERVED_V1, source={"uri": "hostpath:///etc"}, paused=paused)

    assert (decision.template, decision.create) == (V1, False)
    assert (decision.assessment.reason, decision.assessment.stalled) == ("InvalidSpec", True)


def test_what_the_api_server_refused_is_not_deployed() -> None:
    decision = decide(serving(V1, refusal="Deployment narrator is refused"), SERVED_V1, version="v2")

    assert (decision.template, decision.assessment.message) == (V1, "Deployment narrator is refused")


def test_a_name_conflict_stops_everything() -> None:
    decision = decide(Observed(conflicts=(FOREIGN,), revisions=tuple(stored(f"r{n}") for n in range(9))))

    assert (decision.touch, decision.template, decision.create, decision.prune) == (False, None, False, ())
    assert decision.look_again is None


def test_an_object_that_is_going_is_waited_for() -> None:
    going = NameConflict(kind="Deployment", namespace="speech", name="narrator", going=True)

    decision = decide(Observed(conflicts=(going,)))

    assert (decision.assessment.reason, decision.look_again) == ("WaitingForDeletion", LOOK_AGAIN_SECONDS)


def test_old_revisions_go_but_never_one_that_is_needed() -> None:
    history = (
        stored(V2, version="v2"),
        stored("scaled", age=9),
        stored("podded", age=8),
        stored("new", age=1),
        stored("older", age=2),
        stored("oldest", age=3),
        stored(V1, age=99),
    )
    observed = Observed(
        revisions=history,
        workload=workload(V2),
        replica_sets=(ReplicaSet(revision="scaled", replicas=1), ReplicaSet(revision="older", replicas=0)),
        pods=(ready_pod("podded"),),
    )

    decision = decide(observed, SERVED_V1, version="v2", rollout={"historyLimit": 1})

    assert decision.prune == ("older", "oldest")


@pytest.mark.parametrize(("limit", "pruned"), [(5, 0), (2, 1), (0, 3)])
def test_the_history_limit_counts_what_nobody_needs(limit: int, pruned: int) -> None:
    history = (stored(V1), *(stored(f"r{n}", age=n + 1) for n in range(3)))

    assert len(decide(serving(V1, revisions=history), rollout={"historyLimit": limit}).prune) == pruned


def test_scaling_to_zero_proves_nothing() -> None:
    zero = Observed(revisions=(stored(V2),), workload=workload(V2, 0))

    decision = decide(zero, SERVED_V1, version="v2", worker={"replicas": 0})

    assert (decision.assessment.reason, decision.assessment.ready) == ("ScaledToZero", True)
    assert (decision.last_good, decision.active_revision) == (V1, V1)


def test_equal_arguments_give_equal_decisions() -> None:
    assert decide(serving(V1), SERVED_V1) == decide(serving(V1), SERVED_V1)

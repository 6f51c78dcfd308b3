"""Where a version runs: in pods of its own, or in those that run already. Whole decisions, pass by pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from cosyvoice_operator import order, progress, rollout, times
from cosyvoice_operator.observed import Live, ReplicaSet, Swap, Workload
from tests.unit.operator.builders import (
    START,
    ended_container,
    full,
    model,
    pod,
    target_of,
    workload,
)
from tests.unit.operator.placing import AUTO, V1, V2, after, asks, decide, kept, labelled, seen, trial


def test_an_eligible_version_is_tried_by_one_pod_of_the_template_that_serves() -> None:
    decision = decide(asks(), seen(labelled("a"), labelled("b")))

    placed = decision.placed
    assert placed is not None
    assert (placed.template, placed.revision, placed.current, placed.candidate) == (V1, V2, V1, V2)
    assert placed.swap is not None
    assert placed.swap.order is not None
    assert (placed.swap.order[0], order.parse(placed.swap.order[1]).name) == ("a", f"{V2}.1")  # type: ignore[union-attr] # it is an order
    assert (decision.create, placed.record.strategy, decision.look_again) == (True, "HotSwap", 1.0)
    assert decision.assessment.progressing
    assert not decision.assessment.ready


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"staging": {"sizeLimit": "1Gi"}}, "spec.volumes[1].emptyDir.sizeLimit"),
        ({"worker": {"image": "w:2"}}, "spec.initContainers[0].image"),
    ],
)
def test_any_other_version_gets_pods_of_its_own_and_the_message_says_why(spec: dict[str, Any], words: str) -> None:
    asked = asks(**spec)
    mine = kept("v2", **spec)
    wanted = target_of(asked)
    first = decide(asked, seen(labelled("a"), labelled("b")))
    assert first.placed is not None
    assert (first.template, first.placed.record.strategy, first.placed.swap) == (wanted, "RollingUpdate", None)

    rolling = seen(labelled("a"), pod(wanted, "n"), revisions=(mine,), workload=workload(wanted, updated=1))
    assert words in decide(asked, rolling).assessment.message


def test_without_a_ready_pod_there_is_nobody_to_try_it() -> None:
    decision = decide(asks(), seen(labelled("a", ready=False), workload=workload(V1)))

    assert decision.template == V2


def test_a_paused_model_takes_no_step() -> None:
    trying = seen(labelled("a", order=f"{V2}.1.5"), labelled("b"), live=Live(template=V1, current=V1, candidate=V2))

    placed = decide(asks(paused=True), trying).placed

    assert placed is not None
    assert (placed.template, placed.current, placed.candidate, placed.swap) == (V1, V1, V2, None)


def test_what_a_pod_has_loaded_becomes_current_and_is_not_good_before_all_serve_it() -> None:
    asked, observed = trial("Switched")

    decision = decide(asked, observed)

    assert decision.placed is not None
    assert (decision.placed.current, decision.placed.candidate) == (V2, None)
    assert (decision.last_good, decision.assessment.ready) == (V1, False)


def test_a_version_that_cannot_be_loaded_goes_into_quarantine_and_what_served_stays() -> None:
    asked, observed = trial("Failed")

    decision = decide(asked, observed)

    assert [entry.revision for entry in decision.quarantine] == [V2]
    assert decision.placed is not None
    assert (decision.placed.template, decision.placed.revision) == (V1, V1)
    assert (decision.placed.current, decision.placed.candidate) == (V1, None)
    assert decision.placed.swap is not None
    assert decision.placed.swap.order is not None
    assert decision.placed.swap.order[1].startswith(f"{V1}.8.")
    assert decision.assessment.rolled_back
    assert [failure.reason for failure in after(asked, observed).failures] == ["MissingTensor"]


def test_with_automatic_rollback_off_it_is_told_and_nothing_is_moved() -> None:
    asked, observed = trial("Failed")
    asked = asks(asked.status, rollout={"strategy": "HotSwap", "automaticRollback": False})

    decision = decide(asked, observed)

    assert (decision.quarantine, decision.assessment.stalled) == ((), True)
    assert decision.look_again == rollout.LOOK_AGAIN_SECONDS
    assert decision.placed is not None
    assert (decision.placed.candidate, decision.placed.swap and decision.placed.swap.order) == (V2, None)


def test_what_may_pass_is_tried_again_and_the_count_is_kept_in_the_status() -> None:
    asked, observed = trial("Failed", reason="EngineDied")

    kept_record = after(asked, observed).rollout

    assert kept_record is not None
    assert (kept_record.attempt, kept_record.tries) == (8, 1)
    assert decide(asked, observed).quarantine == ()

    asked, observed = trial("Failed", reason="EngineDied", tries=3)
    assert [entry.reason for entry in decide(asked, observed).quarantine] == ["EngineDied"]


def test_what_ended_in_the_pod_before_the_swap_is_not_the_new_versions_fault() -> None:
    asked, observed = trial("Loading")
    old_crashes = replace(observed.pods[0].worker, restarts=9)
    observed = replace(observed, pods=(replace(observed.pods[0], worker=old_crashes, ready=False), *observed.pods[1:]))

    assert decide(asked, observed).quarantine == ()


@pytest.mark.parametrize(
    ("choice", "strategy", "stalled"),
    [("Wait", "HotSwap", False), ("Replace", "Replace", False), ("Fail", "HotSwap", True)],
)
def test_without_memory_for_a_second_engine_the_user_decides(choice: str, strategy: str, stalled: bool) -> None:
    asked, observed = trial("Failed", room=True, reason="OutOfMemory")
    asked = asks(asked.status, rollout={"strategy": "HotSwap", "onNoCapacity": choice})

    decision = decide(asked, observed)

    assert (decision.assessment.reason, decision.assessment.stalled) == ("NoCapacity", stalled)
    assert (decision.quarantine, decision.assessment.degraded) == ((), False)
    assert decision.placed is not None
    assert decision.placed.record.strategy == strategy
    assert decision.placed.template == (V2 if strategy == "Replace" else V1)


def test_auto_rolls_out_and_swaps_only_where_no_node_takes_one_pod_more() -> None:
    auto_v2 = target_of(model(version="v2", **AUTO))
    asked = asks(**AUTO)
    assert decide(asked, seen(labelled("a"), labelled("b"))).template == auto_v2

    waiting = pod(auto_v2, "n", scheduled=None, node=None, unschedulable="0/2 nodes: 2 Insufficient nvidia.com/gpu")
    rolling = seen(
        labelled("a"),
        labelled("b"),
        replace(waiting, created=START.replace(hour=11)),
        revisions=(kept("v2", **AUTO),),
        workload=Workload(revision=auto_v2, replicas=2, total=3, updated=1, ready=2, available=2),
        replica_sets=(ReplicaSet(revision=V1, replicas=2), ReplicaSet(revision=auto_v2, replicas=1)),
    )

    placed = decide(asked, rolling).placed

    assert placed is not None
    assert (placed.template, placed.revision, placed.record.strategy) == (V1, auto_v2, "HotSwap")
    assert (placed.current, placed.candidate, placed.swap) == (V1, None, None)


def test_a_swapped_revision_is_good_together_with_the_template_that_carries_it() -> None:
    asked, observed = trial("Switched")
    live = Live(template=V1, current=V2)
    both = tuple(labelled(name, V2, Swap(order=f"{V2}.7", state="Switched"), order=f"{V2}.7.1") for name in ("a", "b"))
    observed = seen(*both, live=live, revisions=(kept("v2"),))

    written = after(asked, observed)

    assert (written.reason, written.active_revision, written.active_version) == ("Ready", V2, "v2")
    assert (written.last_good_revision, written.last_good_template) == (V2, V1)


def test_replicas_of_none_are_rolled_out_without_proof() -> None:
    decision = decide(asks(worker={"replicas": 0}), seen(workload=full(V1, 0)))

    assert decision.template == target_of(asks())


@pytest.mark.parametrize(("seconds", "condemned"), [(-30, False), (89, False), (90, True)])
def test_a_pod_that_cannot_have_seen_the_new_documents_yet_says_nothing_about_them(
    seconds: int, condemned: bool
) -> None:
    asked, _ = trial("Loading")
    record = asked.status.rollout
    assert record is not None
    proven = START - timedelta(seconds=100)
    begun = structs.replace(record, started_at=times.write(proven))
    failed = ended_container(65, reason="DigestMismatch")
    assert failed.ended is not None
    failed = replace(failed, ended=replace(failed.ended, finished_at=proven + timedelta(seconds=seconds)))
    new = pod(V1, "n", stage=failed)
    observed = seen(labelled("a", V2), new, live=Live(template=V1, current=V2), revisions=(kept("v2"),))

    decision = decide(asks(structs.replace(asked.status, rollout=begun)), observed)

    assert bool(decision.quarantine) == condemned


def test_a_pod_that_began_while_another_revision_was_current_is_asked_and_told_to_load_what_came_back() -> None:
    back = Live(template=V1, current=V1)
    observed = seen(labelled("a", serves=V2), live=back, revisions=(kept("v2"),), workload=full(V1, 1))

    placed = decide(asks(version="v1", worker={"replicas": 1}), observed).placed

    assert [asked.name for asked in progress.pods_that_swap(seen(labelled("a"), live=back))] == ["a"]
    assert placed is not None
    assert placed.swap is not None
    assert placed.swap.order is not None
    assert placed.swap.order[1].startswith(f"{V1}.")

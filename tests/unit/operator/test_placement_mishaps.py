"""Swaps whose objects are touched meanwhile: the model is paused, a ConfigMap is deleted. Whole decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from msgspec import structs

from cosyvoice_operator import rollout
from cosyvoice_operator.observed import Live
from cosyvoice_operator.order import Order
from tests.unit.operator.builders import POLICY, START, ended_container, ready_pod
from tests.unit.operator.placing import SERVED_V1, V1, V2, after, asks, decide, kept, labelled, seen, trial


def test_a_swap_that_is_paused_is_not_done_though_a_pod_that_does_not_answer_may_serve_it() -> None:
    asked, _ = trial("Switched")
    half = seen(
        labelled("a", V2, order=f"{V2}.7.1"),
        ready_pod(V1, "b"),
        live=Live(template=V1, current=V2),
        revisions=(kept("v2"),),
    )

    decision = decide(asks(asked.status, paused=True), half)

    assert (decision.last_good, decision.assessment.ready) == (V1, False)


def test_a_swapped_revision_whose_carrier_was_deleted_gets_pods_of_its_own() -> None:
    good = structs.replace(SERVED_V1, last_good_revision=V2, last_good_template=V1, target_revision=V2)
    both = (labelled("a", V2), labelled("b", V2))
    orphaned = seen(*both, live=Live(template=V1, current=V2))
    without_v1 = replace(orphaned, revisions=(kept("v2"),))

    decision = decide(asks(good), without_v1)

    assert (decision.template, decision.revision, decision.prune) == (V2, V2, ())
    assert decide(asks(good), replace(orphaned, revisions=())).template == V1


def test_a_worker_that_never_answers_stalls_the_swap_and_blames_nobody() -> None:
    asked, trying = trial("Loading")
    told = Order(revision=V2, attempt=7, given=START).text
    first, second = (replace(pod, status=None) for pod in trying.pods)
    silent = replace(trying, pods=(replace(first, order=told), second))

    early, late = (rollout.decide(asked, silent, POLICY, START + timedelta(seconds=seconds)) for seconds in (600, 601))

    assert (early.assessment.progressing, early.assessment.stalled) == (True, False)
    assert (late.assessment.progressing, late.assessment.stalled) == (False, True)
    assert (late.quarantine, late.template, late.assessment.degraded) == ((), V1, False)
    assert "does not answer" in late.assessment.message


def test_a_swap_that_only_failing_replicas_could_try_goes_on_in_pods_of_its_own() -> None:
    asked, trying = trial("Loading")
    silent = ended_container(70, reason="SilentAudio", message="the warm-up is silent")
    failing = [replace(pod, ready=False, ready_since=None, status=None, worker=silent) for pod in trying.pods]

    assert decide(asked, trying).template == V1
    assert decide(asked, replace(trying, pods=tuple(failing))).template == V2


def test_a_swapped_version_is_not_ready_while_a_lost_pod_still_counts_for_kubernetes() -> None:
    asked, _ = trial("Switched")
    good = structs.replace(asked.status, last_good_revision=V2, last_good_template=V1)
    a, b = labelled("a", V2, order=f"{V2}.7.1"), labelled("b", V2, order=f"{V2}.7.1")
    fields: dict[str, Any] = {"live": Live(template=V1, current=V2), "revisions": (kept("v2"),)}

    assert decide(asks(good), seen(a, b, **fields)).assessment.ready
    lost = replace(b, ready=False, ready_since=None, status=None, lost="Preempted")
    assert not decide(asks(good), seen(a, lost, **fields)).assessment.ready


def test_the_status_of_a_swapped_version_names_what_is_served_also_while_a_pod_is_lost() -> None:
    asked, _ = trial("Switched")
    a, b = labelled("a", V2, order=f"{V2}.7.1"), labelled("b", V2, order=f"{V2}.7.1")
    fields: dict[str, Any] = {"live": Live(template=V1, current=V2), "revisions": (kept("v2"),)}
    lost = replace(b, ready=False, ready_since=None, status=None, lost="Preempted")

    full = after(asked, seen(a, b, **fields))
    short = after(asks(full), seen(a, lost, **fields))

    for told in (full, short):
        assert (told.active_version, told.active_revision, told.target_revision) == ("v2", V2, V2)
        assert (told.last_good_revision, told.last_good_template) == (V2, V1)
        assert (told.is_true("Available"), told.quarantine) == (True, ())
    assert (full.reason, full.is_true("Ready"), full.is_true("Degraded")) == ("Ready", True, False)
    assert (short.is_true("Ready"), short.is_true("Degraded")) == (False, True)

"""Swaps whose objects are touched meanwhile: the model is paused, a ConfigMap is deleted. Whole decisions."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from cosyvoice_operator.observed import Live
from tests.unit.operator.builders import (
    ready_pod,
)
from tests.unit.operator.placing import SERVED_V1, V1, V2, asks, decide, kept, labelled, seen, trial


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

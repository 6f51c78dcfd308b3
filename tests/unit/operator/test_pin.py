"""A revision that the user pinned by the annotation `rollback-to`."""

from __future__ import annotations

from msgspec.structs import replace

from tests.unit.operator.builders import (
    flags,
    serving,
    stored,
)
from tests.unit.operator.failing_version import BOTH, SERVED_V1, V1, V2, after, asked, back, condemned, decide


def test_a_pin_runs_the_stored_revision_whatever_the_spec_says() -> None:
    pinned = asked(replace(SERVED_V1, last_good_revision=V2, active_revision=V2), pin=V1)

    decision = decide(pinned, serving(V2, revisions=BOTH))
    there = decide(pinned, back())

    assert (decision.target, decision.template, decision.create) == (V1, V1, False)
    assert (there.assessment.reason, flags(there.assessment), there.last_good) == ("Pinned", "", V1)
    written = after(pinned, back())
    assert (written.target_version, written.is_true("Pinned"), written.is_true("Ready")) == ("v1", True, False)


def test_a_pin_to_what_the_spec_asks_for_is_ready() -> None:
    written = after(asked(SERVED_V1, version="v1", pin=V1), back())

    assert (written.reason, written.is_true("Pinned"), written.is_true("Ready")) == ("Ready", True, True)


def test_a_pin_to_an_unknown_revision_names_the_known_ones_and_moves_nothing() -> None:
    decision = decide(asked(SERVED_V1, pin="nonsense"), back())

    assert (decision.template, decision.assessment.reason) == (V1, "InvalidSpec")
    assert decision.assessment.message == (
        "metadata.annotations[cosyvoice.dev/rollback-to]: there is no revision 'nonsense' "
        f"(there are: {V2} (v2), {V1} (v1)): name one of these, or remove the annotation to return to the spec"
    )


def test_taking_a_pin_away_returns_to_the_spec_but_not_into_the_quarantine() -> None:
    assert decide(asked(SERVED_V1), back()).template == V2
    assert decide(asked(condemned()), back()).template == V1


def test_the_pinned_and_the_last_good_revision_are_never_pruned() -> None:
    history = (*BOTH, *(stored(f"r{n}", age=100 + n) for n in range(3)))
    observed = serving(V2, revisions=history)

    decision = decide(asked(SERVED_V1, rollout={"historyLimit": 0}, pin="r1"), observed)

    assert set(decision.prune) == {"r0", "r2"}

"""How long a version that failed is kept out, and what lets it in again."""

from __future__ import annotations

from dataclasses import replace as altered
from datetime import datetime
from typing import Any

import pytest

from cosyvoice_operator.observed import Container, Observed
from tests.unit.operator.builders import (
    START,
    serving,
    staged_container,
    workload,
)
from tests.unit.operator.failing_version import (
    BOTH,
    CRASHED,
    OLD,
    SERVED_V1,
    V1,
    V2,
    V3,
    after,
    asked,
    back,
    condemned,
    decide,
    trying,
)


@pytest.mark.parametrize(
    ("entry", "annotations", "tried"),
    [
        ({}, {}, False),
        ({}, {"retry": "1"}, True),
        ({"retry": "1"}, {"retry": "1"}, False),
        ({"retry": "1"}, {"retry": "2"}, True),
        ({"retry": "1"}, {}, False),
        ({}, {"pin": V2}, True),
        ({"rollback_to": V2}, {"pin": V2}, False),
        ({"rollback_to": V2}, {}, False),
        ({"retry_after": "2026-11-30T12:10:00Z"}, {}, False),
        ({"retry_after": "2026-11-30T11:59:59Z"}, {}, True),
    ],
)
def test_a_quarantined_version_is_tried_again_only_when_asked_or_when_time_has_passed(
    entry: dict[str, Any], annotations: dict[str, str], tried: bool
) -> None:
    decision = decide(asked(condemned(**entry), **annotations), back())

    assert decision.template == (V2 if tried else V1)


def test_a_version_whose_time_has_come_waits_until_the_restored_one_is_full() -> None:
    expired = condemned(retry_after="2026-11-30T11:00:00Z")
    short = back(workload=workload(V1, 2, total=2, updated=2, available=1))

    assert decide(asked(expired), short).template == V1
    assert decide(asked(expired), back()).template == V2
    assert decide(asked(expired), trying(staged_container(), Container(running=True))).template == V2


def test_a_retry_waits_until_the_pods_that_failed_are_gone() -> None:
    stopping = Observed(revisions=BOTH, workload=workload(V1, 2, total=3, updated=2), pods=trying().pods)

    assert decide(asked(condemned(), retry="1"), stopping).template == V1
    lost = altered(trying().pods[-1], lost="Evicted")
    assert decide(asked(condemned(), retry="1"), altered(stopping, pods=(*OLD, lost))).template == V2


def test_a_version_that_fails_again_waits_longer() -> None:
    crashing = trying(staged_container(), CRASHED)
    current, now, waits = SERVED_V1, START, []
    for _ in range(8):
        current = after(asked(current), crashing, now)
        (entry,) = current.quarantine
        until = datetime.fromisoformat(entry.retry_after or "")
        waits.append((until - now).total_seconds() / 60)
        now = until

    assert waits == [10, 20, 40, 80, 160, 320, 360, 360]
    assert entry.attempts == 8
    asked_again = after(asked(current, retry="please"), crashing, now)
    assert (asked_again.quarantine[0].attempts, asked_again.quarantine[0].retry) == (1, "please")


def test_a_version_that_serves_at_last_leaves_the_quarantine() -> None:
    decision = decide(asked(condemned(), retry="1"), serving(V2, revisions=BOTH))

    assert (decision.last_good, decision.quarantine, decision.assessment.reason) == (V2, (), "Ready")


def test_scaling_does_not_lift_a_quarantine() -> None:
    decision = decide(asked(condemned(), worker={"replicas": 5}), back())

    assert (decision.template, decision.assessment.reason) == (V1, "RolledBack")


def test_a_third_version_is_rolled_out_and_the_second_stays_in_quarantine() -> None:
    decision = decide(asked(condemned(), version="v3"), back())

    assert (decision.template, decision.create, decision.assessment.reason) == (V3, True, "Creating")
    assert [entry.revision for entry in decision.quarantine] == [V2]
    assert decide(asked(condemned(), version="v2"), serving(V1, revisions=BOTH)).template == V1


def test_a_version_that_has_failed_when_the_spec_moves_on_is_remembered() -> None:
    decision = decide(asked(SERVED_V1, version="v3"), trying())

    assert (decision.template, [entry.revision for entry in decision.quarantine]) == (V3, [V2])

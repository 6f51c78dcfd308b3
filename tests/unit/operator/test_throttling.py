"""The condition MemoryHighApplied: what is told of memory.high, and when nothing is written."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from cosyvoice_operator import rollout, status, throttling
from cosyvoice_operator.api_status import Condition, Status
from cosyvoice_operator.conditions import MEMORY_HIGH_APPLIED
from cosyvoice_operator.observed import MemoryHigh, Observed, Pod, WorkerStatus
from tests.unit.operator.builders import POLICY, START, model, ready_pod, serving, target_of

GIB = 2**30
SPEC: dict[str, Any] = {"worker": {"memoryHigh": "6Gi"}}
TARGET = target_of(model(**SPEC))

APPLIED = MemoryHigh(wanted=6 * GIB, state="Applied", applied=6 * GIB, route="NodeAgent")
DELEGATED = replace(APPLIED, route="Delegated")
NOT_APPLIED = MemoryHigh(wanted=6 * GIB, state="NotApplied", reason="nothing has set memory.high")
UNKNOWN = MemoryHigh(wanted=6 * GIB, state="Unknown", reason="this node has cgroup v1")
SILENT = "gives no answer"


def worker(name: str, told: MemoryHigh | str | None) -> Pod:
    answer = None if isinstance(told, str) else WorkerStatus(phase="Ready", memory_high=told)
    return ready_pod(TARGET, name, status=answer)


def observed(*told: MemoryHigh | str | None) -> Observed:
    return serving(TARGET, len(told), pods=tuple(worker(f"narrator-{index}", one) for index, one in enumerate(told)))


def report(seen: Observed, before: Status | None = None, **spec: Any) -> Status:
    asked = model(status=before, **(spec or SPEC))
    return status.report(asked, seen, rollout.decide(asked, seen, POLICY, START), START)


def condition(*told: MemoryHigh | str | None, before: Status | None = None) -> Condition:
    found = report(observed(*told), before).condition(MEMORY_HIGH_APPLIED)
    assert found is not None
    return found


CASES = {
    "applied everywhere": (
        (APPLIED, APPLIED),
        ("True", "Applied", "memory.high is 6Gi on the worker container, by the node agent"),
    ),
    "by two routes": (
        (APPLIED, DELEGATED),
        (
            "True",
            "Applied",
            "memory.high is 6Gi on the engine's own cgroup, by the worker and on the worker container, by the node "
            "agent",
        ),
    ),
    "missing on one": (
        (APPLIED, NOT_APPLIED),
        ("False", "NotApplied", "narrator-1 on node1: nothing has set memory.high (wanted: 6Gi)"),
    ),
    "missing on one, unknown on another": (
        (UNKNOWN, NOT_APPLIED),
        ("False", "NotApplied", "narrator-1 on node1: nothing has set memory.high (wanted: 6Gi)"),
    ),
    "a node with cgroup v1": (
        (APPLIED, UNKNOWN),
        ("Unknown", "NotSupported", "narrator-1 on node1: this node has cgroup v1 (wanted: 6Gi)"),
    ),
    "a worker that knows nothing of it": (
        (APPLIED, None),
        ("Unknown", "NotReported", "narrator-1 on node1: the worker says nothing of memory.high (wanted: 6Gi)"),
    ),
    "one gives no answer": (
        (APPLIED, SILENT),
        ("True", "Applied", "memory.high is 6Gi on the worker container, by the node agent"),
    ),
    "none gives an answer": ((SILENT, SILENT), ("Unknown", "NotReported", "no worker of v1 has told yet")),
}


@pytest.mark.parametrize(("told", "expected"), CASES.values(), ids=CASES)
def test_each_case(told: tuple[MemoryHigh | str | None, ...], expected: tuple[str, str, str]) -> None:
    found = condition(*told)

    assert (found.status, found.reason, found.message) == expected


def test_pods_of_a_pinned_revision_are_told_of_with_their_own_wish() -> None:
    own = replace(APPLIED, wanted=2 * GIB, applied=2 * GIB)

    found = condition(own, own)

    assert (found.status, found.message) == ("True", "memory.high is 2Gi on the worker container, by the node agent")


def test_without_the_wish_there_is_no_condition() -> None:
    before = report(observed(APPLIED))
    assert before.condition(MEMORY_HIGH_APPLIED) is not None

    after = report(serving(target_of(model())), before, version="v1")

    assert after.condition(MEMORY_HIGH_APPLIED) is None


def test_a_worker_that_is_busy_changes_nothing() -> None:
    before = report(observed(APPLIED, APPLIED))

    assert report(observed(APPLIED, SILENT), before) == before
    assert report(observed(SILENT, SILENT), before) == before


def test_what_differs_at_each_look_is_not_written() -> None:
    before = report(observed(DELEGATED))

    assert report(observed(replace(DELEGATED, applied=6 * GIB - 4096)), before) == before


def test_only_workers_that_can_answer_are_asked() -> None:
    asked = model(**SPEC)
    pods = (worker("b", None), worker("a", None), replace(worker("c", None), address=None))

    assert [pod.name for pod in throttling.pods_to_ask(asked, pods)] == ["a", "b"]
    assert throttling.pods_to_ask(model(), pods) == ()
    many = [worker(f"narrator-{index:02}", None) for index in range(40)]
    assert len(throttling.pods_to_ask(asked, many)) == throttling.MAX_ASKED


@pytest.mark.parametrize(
    ("told", "later", "due", "seconds"),
    [
        (NOT_APPLIED, 0, None, 5.0),
        (NOT_APPLIED, 0, 1.0, 1.0),
        (UNKNOWN, 60, 600.0, 5.0),
        (NOT_APPLIED, 121, None, None),
        (APPLIED, 0, None, None),
    ],
)
def test_for_a_while_it_is_looked_at_again(
    told: MemoryHigh, later: int, due: float | None, seconds: float | None
) -> None:
    written = report(observed(told))

    assert throttling.look_again(due, written, START + timedelta(seconds=later)) == seconds


def test_without_the_condition_nothing_is_looked_at_sooner() -> None:
    assert throttling.look_again(None, Status(), START) is None

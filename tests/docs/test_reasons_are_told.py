"""Whatever a status or a container can say of itself is explained: every reason, condition and exit code."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from cosyvoice_operator import conditions, events, throttling
from cosyvoice_worker.outcome import EXIT_CODES, RETRYABLE_EXIT_CODES, Reason
from tests.docs.pages import ROOT

GUIDE = (ROOT / "docs" / "user-guide.md").read_text(encoding="utf-8")
WORKER = (ROOT / "docs" / "worker.md").read_text(encoding="utf-8")
MEMORY_HIGH = (ROOT / "docs" / "memory-high.md").read_text(encoding="utf-8")
# The operator's rooms that name reasons, each by a constant.
ROOMS = ("assessment", "failures", "progress", "restoring", "judgement", "swapping")
CAMEL_CASE = re.compile(r"[A-Z][a-z]+([A-Z][a-z]+)*")


def reasons_of_the_operator() -> set[str]:
    """The values of the constants of those rooms that read as reasons."""
    return {
        value
        for room in ROOMS
        for name, value in vars(importlib.import_module(f"cosyvoice_operator.{room}")).items()
        if name.isupper() and isinstance(value, str) and CAMEL_CASE.fullmatch(value)
    }


def explained(word: str, page: str) -> bool:
    """Whether a row of a table begins with the word, alone or among others."""
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    return any(f"`{word}`" in row for row in rows)


@pytest.mark.parametrize("reason", sorted(reasons_of_the_operator() | {*Reason} - {Reason.STAGED, Reason.COMPLETED}))
def test_every_reason_has_a_row(reason: str) -> None:
    assert explained(reason, GUIDE), f"docs/user-guide.md says nothing of the reason {reason}"


@pytest.mark.parametrize(
    "kind", sorted(value for name, value in vars(conditions).items() if name.isupper() and isinstance(value, str))
)
def test_every_condition_is_told(kind: str) -> None:
    assert f"`{kind}`" in GUIDE, f"docs/user-guide.md says nothing of the condition or reason {kind}"


@pytest.mark.parametrize(
    "reason",
    [throttling.APPLIED, throttling.NOT_APPLIED, throttling.NOT_SUPPORTED, throttling.NOT_REPORTED],
)
def test_every_reason_of_memory_high_has_a_row(reason: str) -> None:
    rows = [
        line.split("|")[2].strip() for line in MEMORY_HIGH.splitlines() if line.startswith("| ") and "|" in line[2:]
    ]

    assert reason in rows, f"docs/memory-high.md says nothing of the reason {reason}"


def test_every_event_and_every_reason_of_a_condition_is_told() -> None:
    named = [
        word
        for room in (conditions, events)
        for word in re.findall(r'reason="(\w+)"', Path(str(room.__file__)).read_text(encoding="utf-8"))
    ]

    assert len(named) > 10
    assert [word for word in named if f"`{word}`" not in GUIDE] == []


@pytest.mark.parametrize("code", sorted({*EXIT_CODES.values()} - {0}))
def test_every_exit_code_has_a_row_with_its_reasons_and_whether_it_is_retried(code: int) -> None:
    (row,) = [line for line in WORKER.splitlines() if line.startswith(f"| {code} |")]
    _, _, reasons, retried, _ = (cell.strip() for cell in row.split("|"))

    assert [reason for reason, its in EXIT_CODES.items() if its == code and reason not in reasons] == []
    assert retried == ("yes" if code in RETRYABLE_EXIT_CODES else "no")

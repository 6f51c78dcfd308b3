"""The page about rehearsing failures lists the faults that there are, as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosyvoice_worker.faults.kit import FAULTS
from cosyvoice_worker.outcome import EXIT_CODES, RETRYABLE_EXIT_CODES, Phase

PAGE = Path(__file__).parents[2] / "docs" / "rehearsing-failures.md"
WHILE = {Phase.STAGE: "staging", Phase.MAP: "mapping", Phase.BUILD: "building", Phase.WARM_UP: "warming up"}


@pytest.mark.parametrize("name", FAULTS)
def test_the_page_tells_how_a_worker_ends(name: str) -> None:
    fault = FAULTS[name]
    (row,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{name}` |")]

    code = EXIT_CODES[fault.reason]
    told = f"{code}, retried" if code in RETRYABLE_EXIT_CODES else str(code)
    assert row.split(" | ")[2:] == [fault.reason, WHILE[fault.phase], f"{told} |"]


def test_the_page_tells_of_no_other_fault() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]

    assert [row.split("`")[1] for row in rows] == list(FAULTS)

"""Tables as Markdown, so that what a run prints can be put into docs/benchmarks.md as it is."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned by column; the first column to the left, the others, which hold numbers, to the right.

    Raises ValueError for a row of another length than the head.
    """
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"the row {list(row)} has {len(row)} cells, the head {len(head)}")
    widths = [max(3, *(len(row[column]) for row in (head, *rows))) for column in range(len(head))]
    rule = ["-" * width if column == 0 else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    return "\n".join(_line(row, widths) for row in (head, rule, *rows))


def goal(name: str, value: float, limit: float, digits: int = 2) -> str:
    """One line: what was wanted, what came out, and whether that is enough."""
    verdict = "met" if value <= limit else "NOT met"
    return f"goal: {name}: {value:.{digits}f}, at most {limit:g} wanted: {verdict}"


def machine() -> str:
    """What the figures depend on, in a line."""
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{len(os.sched_getaffinity(0))} CPUs ({platform.machine()}), {gibibytes:.0f} GiB, "
        f"Linux {platform.release().partition('-')[0]}, Python {platform.python_version()}"
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return "| " + " | ".join(padded) + " |"

"""The arithmetic of the tables: no clock, no process, no file."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, smallest and largest of one thing measured several times."""

    median: float
    smallest: float
    largest: float

    def text(self, digits: int = 2) -> str:
        """`median (smallest-largest)`, all with the same number of digits after the point."""
        return f"{self.median:.{digits}f} ({self.smallest:.{digits}f}-{self.largest:.{digits}f})"


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value. Raises ValueError for none."""
    if not values:
        raise ValueError("nothing was measured: expected at least one value, got none")
    return Spread(statistics.median(values), min(values), max(values))


def ratios(ours: Sequence[float], others: Sequence[float]) -> list[float]:
    """Ours by the other's, round by round: what slowed the machine during a round slowed both.

    Raises ValueError where the rounds do not pair up.
    """
    return [our / other for our, other in zip(ours, others, strict=True)]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` (0 < share <= 1) of the values do not exceed: one that was measured.

    Raises ValueError for no values or another share.
    """
    if not values or not 0 < share <= 1:
        raise ValueError(f"expected values and a share above 0 and up to 1, got {len(values)} values and {share}")
    return sorted(values)[math.ceil(share * len(values)) - 1]

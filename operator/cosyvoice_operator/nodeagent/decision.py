"""What to do with one container's memory.high. Pure.

What the agent sets it marks, so that it takes back its own values and nobody else's.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A container's cgroup. `high` is its memory.high in bytes (None: max), `marked` what the agent set last.

    `delegated`: the worker has cgroups of its own below, and sets the value there.
    """

    high: int | None
    marked: int | None
    delegated: bool


@dataclass(frozen=True, slots=True)
class Set:
    """Mark the cgroup with `high` bytes, then write them."""

    high: int


@dataclass(frozen=True, slots=True)
class Release:
    """Take the mark off; `restore`: write `max` first."""

    restore: bool


def decide(wanted: int | None, seen: Seen, page: int) -> Set | Release | None:
    """What brings `seen` to where `wanted` bytes are, in whole pages of `page` bytes as the kernel keeps them.

    A container on which something else has set what is wanted is left alone, and stays unmarked.
    """
    if wanted is None or seen.delegated:
        return None if seen.marked is None else Release(restore=seen.high == seen.marked)
    high = wanted - wanted % page
    return None if seen.high == high else Set(high)

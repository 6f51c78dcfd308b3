"""Whether a version fits: each bound, what its message tells, and whose fault it is."""

from __future__ import annotations

import dataclasses

import pytest

from cosyvoice_worker.outcome import Reason
from cosyvoice_worker.staging.space import BOOKKEEPING_BYTES, STAGER_BYTES, Room, needed_for, shortage

MIB = 2**20
NEEDED = 100 * MIB
PLENTY = Room(free=1000 * MIB, held=0, size_limit=1000 * MIB, memory_limit=None, available=None)
STAGER_MIB = STAGER_BYTES // MIB


def test_files_take_whole_pages_and_something_to_keep_books_in() -> None:
    assert needed_for([1, 4096, 4097]) == 4 * 4096 + BOOKKEEPING_BYTES


CASES = [
    ("nothing is short", {}, None),
    ("exactly as large as the limit", {"size_limit": NEEDED}, None),
    (
        "larger than the limit",
        {"size_limit": NEEDED - 1},
        (
            Reason.OUT_OF_SPACE,
            False,
            "the files need 100.0 MiB, spec.staging.sizeLimit is 100.0 MiB: set it to at least 100Mi",
        ),
    ),
    (
        "too large beside others",
        {"size_limit": 150 * MIB, "held": 60 * MIB},
        (
            Reason.OUT_OF_SPACE,
            True,
            "the files need 100.0 MiB + 60.0 MiB of versions in use, spec.staging.sizeLimit is 150.0 MiB: set it to at "
            "least 160Mi",
        ),
    ),
    ("exactly the memory limit", {"memory_limit": NEEDED + STAGER_BYTES}, None),
    (
        "more than the memory limit",
        {"memory_limit": NEEDED},
        (
            Reason.OUT_OF_MEMORY,
            False,
            "the files need 100.0 MiB of tmpfs, which counts as memory, and the stager 96.0 MiB, but the memory limit "
            "of the stage container is 100.0 MiB: set it to at least 196Mi",
        ),
    ),
    (
        "more than the memory limit beside others",
        {"memory_limit": 200 * MIB, "held": 5 * MIB},
        (
            Reason.OUT_OF_MEMORY,
            True,
            "the files need 100.0 MiB of tmpfs + 5.0 MiB of versions in use, which counts as memory, and the stager "
            "96.0 MiB, but the memory limit of the stage container is 200.0 MiB: set it to at least 201Mi",
        ),
    ),
    (
        "a tmpfs that others fill",
        {"free": 10 * MIB},
        (
            Reason.OUT_OF_SPACE,
            True,
            "the files need 100.0 MiB, the tmpfs has 10.0 MiB free: the node has not enough allocatable memory for it, "
            "or others use it",
        ),
    ),
    (
        "a node without memory",
        {"available": 150 * MIB},
        (
            Reason.OUT_OF_MEMORY,
            True,
            "the files need 100.0 MiB of tmpfs, which counts as memory, and the stager 96.0 MiB, but the node has only "
            "150.0 MiB available: free memory on it, or let the pod go to another",
        ),
    ),
]


@pytest.mark.parametrize(("change", "told"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_short_is_told_with_the_arithmetic(
    change: dict[str, int], told: tuple[Reason, bool, str] | None
) -> None:
    error = shortage(NEEDED, dataclasses.replace(PLENTY, **change))

    assert (None if error is None else (error.outcome.reason, error.room, str(error))) == told

"""What a process holds for itself."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from cosyvoice_worker.server.memory import Usage, private_bytes

MIB = 1024 * 1024


def test_own_pages_count_and_those_of_a_file_do_not(tmp_path: Path) -> None:
    before = private_bytes(os.getpid())
    assert before is not None

    with mmap.mmap(-1, 32 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as own:
        own.write(b"x" * 32 * MIB)
        held = private_bytes(os.getpid())
    (tmp_path / "weights").write_bytes(b"x" * 32 * MIB)
    with (tmp_path / "weights").open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        pages = sum(mapped[::4096])
        with_file = private_bytes(os.getpid())

    assert held is not None
    assert with_file is not None
    assert held - before > 30 * MIB
    assert pages > 0
    assert with_file - before < 16 * MIB


def test_a_process_that_has_ended_holds_nothing_that_could_be_told(tmp_path: Path) -> None:
    assert private_bytes(1, proc=tmp_path) is None


def test_usage_keeps_the_peak_and_what_was_known_last() -> None:
    usage = Usage()
    usage.at_ready = usage.see(5)
    seen = [usage.see(count) for count in (9, 7, None)]
    usage.between_requests = 3

    assert (seen, usage.peak, usage.growth) == ([9, 7, 7], 9, 0)

"""Zstd, event loops and copies: what the benchmarks about them conclude, and the parts that need no model."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import torch
import zstandard

from benchmarks import asyncio_load, compressed_staging, cpu_copy
from benchmarks._stager import IN_FRONT, INSIDE, PLAIN, Paced, copy, unpack
from benchmarks._ticker import IN_THREAD, Ticker
from benchmarks.asyncio_load import Ticks
from benchmarks.compressed_staging import SPEEDS, Start
from benchmarks.cpu_copy import Held

MIB = 2**20
GIB = 2**30


def a_start(stage: float, load: float) -> Start:
    return Start(stage=stage, load=load, cpu=1.0, tmpfs=MIB, private=0, tensors=1)


def cells(text: str, *beginning: str) -> list[str]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    (row,) = [row for row in rows if row[: len(beginning)] == list(beginning)]
    return row[len(beginning) :]


def test_ways_of_staging_are_compared_round_by_round_from_the_first_byte_to_loaded() -> None:
    ways = {
        PLAIN: [a_start(1.5, 0.5), a_start(3.5, 0.5)],
        IN_FRONT: [a_start(3.0, 1.0), a_start(1.5, 0.5)],
        INSIDE: [a_start(1.0, 3.0), a_start(1.0, 7.0)],
    }

    text = compressed_staging.report({"float32": 0.916}, (200 * MIB, 180 * MIB), dict.fromkeys(SPEEDS, ways))

    assert cells(text, "float32") == ["0.92"]
    assert cells(text, "100 MB/s", IN_FRONT)[:2] == ["3.00 (2.00-4.00)", "1.25 (0.50-2.00)"]
    assert cells(text, "page cache", INSIDE)[:2] == ["6.00 (4.00-8.00)", "2.00 (2.00-2.00)"]
    assert "200 MiB, packed 180 (0.90); 2 rounds" in text


def test_values_that_were_rounded_before_they_were_stored_pack_better() -> None:
    rounded = compressed_staging.packed_share(torch.bfloat16, torch.float32, MIB)

    assert rounded < compressed_staging.packed_share(torch.float32, torch.float32, MIB) < 1


def test_unpacking_gives_what_copying_the_plain_file_gives() -> None:
    content = bytes(range(256)) * 20_000
    copied, unpacked = io.BytesIO(), io.BytesIO()

    copy(Paced(io.BytesIO(content), 0), copied)
    unpack(Paced(io.BytesIO(zstandard.compress(content)), 0), unpacked)

    assert copied.getvalue() == unpacked.getvalue() == content


def test_a_paced_source_is_no_faster_than_it_is_said_to_be() -> None:
    source = Paced(io.BytesIO(bytes(3 * MIB)), 30 * MIB)
    start = time.perf_counter()

    while source.read():
        pass

    assert time.perf_counter() - start >= 0.1


def late_ticks(work: Callable[[Ticker], Coroutine[Any, Any, None]]) -> list[float]:
    """How late a loop ticks while `work` runs in it."""

    async def run() -> list[float]:
        ticker = Ticker()
        ticking = asyncio.create_task(ticker.run())
        await asyncio.sleep(0.02)
        late = await ticker.during(work(ticker))
        ticking.cancel()
        return late

    return asyncio.run(run())


def test_a_loop_that_stands_still_is_late() -> None:
    async def stand_still(_ticker: Ticker) -> None:
        time.sleep(0.5)  # noqa: ASYNC251 - what must not be done, done on purpose

    assert max(late_ticks(stand_still)) > 0.4


def test_a_loop_ticks_on_while_it_awaits_a_thread() -> None:
    def wait_for_ticks(ticker: Ticker) -> None:
        while len(ticker.late) < 5:
            time.sleep(0.001)

    async def await_a_thread(ticker: Ticker) -> None:
        await asyncio.to_thread(wait_for_ticks, ticker)

    assert len(late_ticks(await_a_thread)) >= 5


def test_the_worst_tick_of_a_round_is_told_in_milliseconds() -> None:
    ticks = [Ticks(importing=[0.1, 0.3], loading=[0.001] * 98 + [0.02, 0.05], seconds=2.0)]

    text = asyncio_load.report({("mapped", IN_THREAD): ticks})

    assert cells(text, "mapped", IN_THREAD) == [
        "300 (300-300)",
        "20 (20-20)",
        "50 (50-50)",
        "2.00 (2.00-2.00)",
    ]


def test_a_copy_of_ten_gigabytes_is_counted_from_the_largest_that_was_made() -> None:
    runs = {
        size: {
            "mapping": [Held(seconds=0.1 * size / GIB, cpu=0.1, private=0, read=1.0)],
            "copy": [Held(seconds=0.5 * size / GIB, cpu=0.5, private=size, read=0.9)],
        }
        for size in (GIB, 5 * GIB)
    }

    text = cpu_copy.report(runs)

    assert cells(text, "5 GiB", "copy")[-1] == "0.90 (0.90-0.90)"
    assert "counted from 5 GiB, a copy of 10 GB takes 10.0 GB of memory and 4.7 s; the mapping 0.9 s and none" in text


def test_a_process_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended with 1"):
        cpu_copy.hold_once("copy", tmp_path / "absent")

"""An event loop that ticks while a model loads: `python -m benchmarks._ticker PLACE WAY DIRECTORY`.

PLACE is where PyTorch is imported and the model loaded: in a coroutine of the loop, in a thread that it awaits, or in a
process of its own. It says as JSON how long the loop was late, while importing and while loading.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from cosyvoice_worker.engine.environment import prepare

TICK_SECONDS = 0.005
IN_LOOP, IN_THREAD, IN_PROCESS = "in the event loop", "asyncio.to_thread", "a process of its own"


class Ticker:
    """Wakes up every five milliseconds, and notes by how much it was late."""

    def __init__(self) -> None:
        self.late: list[float] = []

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            due = time.perf_counter() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            self.late.append(time.perf_counter() - due)

    async def during(self, work: Coroutine[Any, Any, None]) -> list[float]:
        """What was noted while `work` ran, and one tick on: a loop that stands still notes it afterwards."""
        self.late = []
        await work
        await asyncio.sleep(2 * TICK_SECONDS)
        return self.late


def imports() -> None:
    """PyTorch and the model's code."""
    from benchmarks import _ways  # noqa: F401, PLC0415 - importing is what is measured


def loads(way: str, directory: Path) -> Callable[[], object]:
    """What loads the model; what it does before that is not measured."""
    from benchmarks._ways import WAYS  # noqa: PLC0415 - after `imports`

    return WAYS[way](directory)


async def measure(place: str, way: str, directory: Path) -> dict[str, Any]:
    """Import and load at `place`; how late the loop was, and the seconds that loading took."""
    ticker = Ticker()
    ticking = asyncio.create_task(ticker.run())
    await asyncio.sleep(10 * TICK_SECONDS)
    begin: Callable[[], Coroutine[Any, Any, None]]
    if place == IN_PROCESS:
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks._loader", way, str(directory),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        talk_in, talk_out = other.stdin, other.stdout
        if talk_in is None or talk_out is None:
            raise RuntimeError("the loader was started without its pipes")

        async def importing() -> None:
            await talk_out.readline()

        async def begin() -> None:
            talk_in.write(b"load\n")
            if not await talk_out.readline():
                raise RuntimeError("the loader ended before it had loaded; its error stands above")

        imported = await ticker.during(importing())
    else:
        imported = await ticker.during(_at(place, imports))
        load = loads(way, directory)
        kept: list[object] = []

        async def begin() -> None:
            await _at(place, lambda: kept.append(load()))

    start = time.perf_counter()
    loaded = await ticker.during(begin())
    seconds = time.perf_counter() - start
    ticking.cancel()
    return {"importing": imported, "loading": loaded, "seconds": seconds}


async def _at(place: str, work: Callable[[], None]) -> None:
    if place == IN_THREAD:
        await asyncio.to_thread(work)
    else:
        work()


def main() -> None:
    """Be that process."""
    place, way, directory = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    prepare()
    print(json.dumps(asyncio.run(measure(place, way, directory))), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()

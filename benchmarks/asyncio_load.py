"""Does another asyncio layer around the load hide the interpreter's lock? How late does a loop beside it tick?

The same loop ticks every five milliseconds while PyTorch is imported and a full-size model loaded in a coroutine, in a
thread that the loop awaits, and in a process of its own, which is what the worker does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks._figures import percentile, spread
from benchmarks._models import full_size
from benchmarks._rounds import alternate, choose_rounds
from benchmarks._table import machine, table
from benchmarks._ticker import IN_LOOP, IN_PROCESS, IN_THREAD

PLACES = (IN_LOOP, IN_THREAD, IN_PROCESS)
WAYS = ("copying", "mapped")
HEAD = ("load", "where", "importing: longest, ms", "loading: p99, ms", "loading: longest, ms", "load, s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """By how many seconds each tick was late, and how long the load took."""

    importing: Sequence[float]
    loading: Sequence[float]
    seconds: float


def main() -> None:
    """Measure and print."""
    rounds = choose_rounds(__doc__, full=5, quick=1)
    with full_size() as model:
        cases = {(way, place): partial(tick_once, place, way, model) for way in WAYS for place in PLACES}
        named = {f"{way}, {place}": case for (way, place), case in cases.items()}
        runs = alternate(rounds, named)
    print(report({case: runs[f"{case[0]}, {case[1]}"] for case in cases}))


def tick_once(place: str, way: str, model: Path) -> Ticks:
    """One import and one load in a fresh process. Raises RuntimeError when it did not come through."""
    command = [sys.executable, "-m", "benchmarks._ticker", place, way, str(model)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(f"the ticking process ({way}, {place}) ended with {done.returncode}; its error stands above")
    return Ticks(**json.loads(done.stdout))


def report(runs: Mapping[tuple[str, str], Sequence[Ticks]]) -> str:
    """The table, from one way and place to the next."""
    rounds = len(next(iter(runs.values())))
    return "\n".join(
        (
            f"{machine()}; how late a tick every 5 ms was, {rounds} rounds; median (smallest-largest)",
            "",
            table(HEAD, [_row(way, place, ticks) for (way, place), ticks in runs.items()]),
        )
    )


def _row(way: str, place: str, runs: Sequence[Ticks]) -> list[str]:
    return [
        way,
        place,
        spread([1000 * max(run.importing) for run in runs]).text(0),
        spread([1000 * percentile(run.loading, 0.99) for run in runs]).text(0),
        spread([1000 * max(run.loading) for run in runs]).text(0),
        spread([run.seconds for run in runs]).text(),
    ]


if __name__ == "__main__":
    main()

"""Is a copy of a large model in the processor's memory worth keeping, so that it can go to the device again?

The weights are staged in tmpfs anyway. *Mapping*: they are mapped and read from there. *Copy*: the process keeps them
in memory of its own besides. Both then hand everything on through a buffer of 64 MiB, as an upload would. Sizes double,
so that it can be seen whether 10 GB may be counted from them; 10 GB twice do not fit beside other programs here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks._figures import ratios, spread
from benchmarks._holder import COPY, MAPPING
from benchmarks._models import TMPFS
from benchmarks._rounds import alternate, choose_rounds, progress
from benchmarks._table import machine, table

MIB = 2**20
GIB = 2**30
SIZES = (GIB, 2 * GIB, 4 * GIB)
WAYS = (MAPPING, COPY)
LARGE = 10_000_000_000
HEAD = ("weights", "way", "at hand, s", "CPU of that, s", "of its own, MiB", "read once, s", "read, copy / mapping")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One process: seconds until the weights are at hand, bytes of its own, seconds to read them through once."""

    seconds: float
    cpu: float
    private: int
    read: float


def main() -> None:
    """Measure and print."""
    rounds = choose_rounds(__doc__, full=7, quick=2)
    runs = {}
    for size in SIZES:
        with tempfile.NamedTemporaryFile(prefix="cosyvoice-bench-copy-", dir=TMPFS) as file:
            progress(f"writing {size / GIB:g} GiB")
            block = os.urandom(MIB)
            for _ in range(size // MIB):
                file.write(block)
            file.flush()
            runs[size] = alternate(rounds, {way: partial(hold_once, way, Path(file.name)) for way in WAYS})
    print(report(runs))


def hold_once(way: str, path: Path) -> Held:
    """In a fresh process. Raises RuntimeError when it did not come through."""
    command = [sys.executable, "-m", "benchmarks._holder", way, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(f"the holder ({way}) ended with {done.returncode}: is there memory for it?")
    return Held(**json.loads(done.stdout))


def report(runs: Mapping[int, Mapping[str, Sequence[Held]]]) -> str:
    """The table, and what 10 GB would take, counted from the largest size that was measured."""
    rounds = len(next(iter(runs.values()))[COPY])
    largest = max(runs)
    factor = LARGE / largest
    copying, mapping = ([run.seconds for run in runs[largest][way]] for way in (COPY, MAPPING))
    private = spread([run.private for run in runs[largest][COPY]]).median
    return "\n".join(
        (
            f"{machine()}; {rounds} rounds; median (smallest-largest)",
            "",
            table(HEAD, [_row(size, way, ways) for size, ways in runs.items() for way in WAYS]),
            "",
            f"counted from {largest / GIB:g} GiB, a copy of 10 GB takes {factor * private / 1e9:.1f} GB of memory and "
            f"{factor * spread(copying).median:.1f} s; the mapping {factor * spread(mapping).median:.1f} s and none",
        )
    )


def _row(size: int, way: str, ways: Mapping[str, Sequence[Held]]) -> list[str]:
    ours = ways[way]
    return [
        f"{size / GIB:g} GiB",
        way,
        spread([run.seconds for run in ours]).text(),
        spread([run.cpu for run in ours]).text(),
        f"{spread([run.private / MIB for run in ours]).median:.0f}",
        spread([run.read for run in ours]).text(),
        spread(ratios([run.read for run in ways[COPY]], [run.read for run in ways[MAPPING]])).text()
        if way == COPY
        else "",
    ]


if __name__ == "__main__":
    main()

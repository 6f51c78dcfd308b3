"""Does zstd make the start faster or slower: in front of tmpfs, while weights are staged, or inside it?

*Plain* copies and hashes, then maps. *In front*: the source is compressed, staging unpacks it. *Inside*: tmpfs holds
the compressed file, and every process that loads unpacks it for itself. Sources of several speeds, one checkpoint.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import zstandard

from benchmarks._figures import ratios, spread
from benchmarks._models import full_size
from benchmarks._rounds import alternate, choose_rounds, progress
from benchmarks._stager import IN_FRONT, INSIDE, PLAIN
from benchmarks._table import machine, table
from cosyvoice_worker.models.cosyvoice2.load import FLOW_FILE

MIB = 2**20
MEGABYTE = 1_000_000
LEVEL = 3
SPEEDS = (100, 200, 500, 1000, 0)  # MB/s of the source; 0: as fast as the page cache gives
WAYS = (PLAIN, IN_FRONT, INSIDE)
KINDS = {
    "float32": (torch.float32, torch.float32),
    "float32, rounded to float16 once": (torch.float16, torch.float32),
    "float32, rounded to bfloat16 once": (torch.bfloat16, torch.float32),
    "float16": (torch.float16, torch.float16),
    "bfloat16": (torch.bfloat16, torch.bfloat16),
}
VALUES = 16 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One checkpoint from its source to loaded, in a fresh process: seconds, and bytes in tmpfs and of its own."""

    stage: float
    load: float
    cpu: float
    tmpfs: int
    private: int
    tensors: int

    @property
    def total(self) -> float:
        """Seconds from the first byte to loaded."""
        return self.stage + self.load


def main() -> None:
    """Measure and print."""
    rounds = choose_rounds(__doc__, full=5, quick=1)
    progress("packing values of each kind")
    kinds = {name: packed_share(*dtypes) for name, dtypes in KINDS.items()}
    with full_size() as model:
        plain = model / FLOW_FILE
        packed = plain.with_suffix(".zst")
        with plain.open("rb") as source, packed.open("wb") as target:
            zstandard.ZstdCompressor(level=LEVEL, threads=-1).copy_stream(source, target)
        sources = {PLAIN: plain, IN_FRONT: packed, INSIDE: packed}
        sizes = (plain.stat().st_size, packed.stat().st_size)
        starts = {}
        for speed in SPEEDS:
            progress(speed_text(speed))
            ways = {way: partial(start_once, way, sources[way], model / "staged", speed) for way in WAYS}
            starts[speed] = alternate(rounds, ways)
    print(report(kinds, sizes, starts))


def packed_share(rounded: torch.dtype, stored: torch.dtype, values: int = VALUES) -> float:
    """Bytes after zstd by bytes before, of normally distributed weights that were `rounded` and are `stored`."""
    weights = torch.randn(values, generator=torch.Generator().manual_seed(0)) * 0.02
    raw = weights.to(rounded).to(stored).view(torch.uint8).numpy().tobytes()
    return len(zstandard.ZstdCompressor(level=LEVEL, threads=-1).compress(raw)) / len(raw)


def start_once(way: str, source: Path, target: Path, speed: int) -> Start:
    """Stage and load once. Raises RuntimeError when the process did not come through."""
    command = [sys.executable, "-m", "benchmarks._stager", way, str(source), str(target), str(speed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    target.unlink(missing_ok=True)
    if done.returncode:
        raise RuntimeError(f"the stager ({way}) ended with {done.returncode}; its error stands above")
    return Start(**json.loads(done.stdout))


def report(
    kinds: Mapping[str, float], sizes: tuple[int, int], starts: Mapping[int, Mapping[str, Sequence[Start]]]
) -> str:
    """Both tables; `sizes` are the checkpoint's bytes, plain and packed."""
    rows = [_row(speed, way, runs) for speed, runs in starts.items() for way in WAYS]
    return "\n".join(
        (
            f"{machine()}; zstd level {LEVEL}, normally distributed weights",
            "",
            table(("weights", "packed / plain"), [[name, f"{share:.2f}"] for name, share in kinds.items()]),
            "",
            f"A checkpoint of {sizes[0] / MIB:.0f} MiB, packed {sizes[1] / MIB:.0f} ({sizes[1] / sizes[0]:.2f}); "
            f"{len(starts[SPEEDS[0]][PLAIN])} rounds; median (smallest-largest)",
            "",
            table(("source", "way", "to loaded, s", "way / plain", "CPU, s", "tmpfs, MiB", "private, MiB"), rows),
        )
    )


def speed_text(speed: int) -> str:
    """As the table has it."""
    return f"{speed} MB/s" if speed else "page cache"


def _row(speed: int, way: str, runs: Mapping[str, Sequence[Start]]) -> list[str]:
    ours = runs[way]
    return [
        speed_text(speed),
        way,
        spread([run.total for run in ours]).text(),
        spread(ratios([run.total for run in ours], [run.total for run in runs[PLAIN]])).text(),
        spread([run.cpu for run in ours]).text(),
        f"{spread([run.tmpfs / MIB for run in ours]).median:.0f}",
        f"{spread([run.private / MIB for run in ours]).median:.0f}",
    ]


if __name__ == "__main__":
    main()

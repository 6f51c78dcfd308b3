"""A process that has staged weights at hand: `python -m benchmarks._holder WAY FILE`.

WAY is *mapping* (FILE in tmpfs, mapped, every page brought in) or *copy* (read into memory of its own). It then hands
the weights on, piece by piece into a buffer, as an upload to a device would read them, and says as JSON what it took.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks._proc import anonymous_bytes

MAPPING, COPY = "mapping", "copy"
PIECE = 64 * 2**20  # as large as a pinned buffer may be


def main() -> None:
    """Be that process."""
    way, path = sys.argv[1], Path(sys.argv[2])
    buffer = np.zeros(PIECE, np.uint8)
    before = anonymous_bytes()
    start, cpu = time.perf_counter(), time.process_time()
    with path.open("rb") as file:
        if way == MAPPING:
            mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=mmap.PROT_READ)
            weights = np.frombuffer(mapped, np.uint8)
        else:
            weights = np.empty(path.stat().st_size, np.uint8)
            file.readinto(weights.data)
    ready = time.perf_counter()
    cpu = time.process_time() - cpu
    private = anonymous_bytes() - before
    again = []
    for _ in range(3):
        begin = time.perf_counter()
        for offset in range(0, len(weights), PIECE):
            piece = weights[offset : offset + PIECE]
            np.copyto(buffer[: len(piece)], piece)
        again.append(time.perf_counter() - begin)
    figures = {"seconds": ready - start, "cpu": cpu, "private": private, "read": min(again)}
    print(json.dumps(figures), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()

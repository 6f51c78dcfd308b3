"""One staging and loading process: `python -m benchmarks._stager WAY SOURCE TARGET MEGABYTES_PER_SECOND`.

It reads the checkpoint SOURCE no faster than the given speed (0: as fast as it comes), leaves TARGET in tmpfs, loads
from there, and says as JSON what that took. `compressed_staging` starts it, once for each measurement.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

import zstandard

from benchmarks._proc import anonymous_bytes
from cosyvoice_worker.engine.environment import prepare

CHUNK = 2**20
MEGABYTE = 1_000_000
PLAIN, IN_FRONT, INSIDE = "plain", "zstd in front of tmpfs", "zstd inside tmpfs"


class Paced:
    """A file that is read no faster than `speed` bytes a second, as from a network volume; 0 sets no limit."""

    def __init__(self, file: IO[bytes], speed: float) -> None:
        self._file, self._speed = file, speed
        self._start, self._given = time.perf_counter(), 0

    def read(self, size: int = CHUNK) -> bytes:
        """The next bytes, when their time has come."""
        data = self._file.read(min(size, CHUNK))
        self._given += len(data)
        if self._speed:
            time.sleep(max(0.0, self._start + self._given / self._speed - time.perf_counter()))
        return data


def copy(source: Paced, target: IO[bytes]) -> None:
    """Copy and hash, as staging does."""
    digest = hashlib.sha256()
    while data := source.read():
        digest.update(data)
        target.write(data)


def unpack(source: Paced, target: IO[bytes]) -> None:
    """Decompress, hash what comes out, and write that."""
    digest = hashlib.sha256()
    stream = cast("IO[bytes]", source)  # only `read` is ever called
    with zstandard.ZstdDecompressor().stream_reader(stream, read_size=CHUNK) as reader:
        while data := reader.read(CHUNK):
            digest.update(data)
            target.write(data)


STAGE: dict[str, Callable[[Paced, IO[bytes]], None]] = {PLAIN: copy, IN_FRONT: unpack, INSIDE: copy}


def main() -> None:
    """Be that process."""
    way, source, target, speed = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4]) * MEGABYTE
    prepare()
    import torch  # noqa: PLC0415 - after `prepare`

    from cosyvoice_worker.weights import checkpoint, memory  # noqa: PLC0415 - after `prepare`

    before = anonymous_bytes()
    start, cpu = time.perf_counter(), time.process_time()
    with source.open("rb") as stream, target.open("wb") as out:
        STAGE[way](Paced(stream, speed), out)
    staged = time.perf_counter()
    if way == INSIDE:
        with target.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            weights = torch.load(io.BytesIO(reader.read()), weights_only=True)
    else:
        weights = checkpoint.read(target)
        memory.protect([target])
        memory.populate([target])
    end = time.perf_counter()
    figures = {
        "stage": staged - start,
        "load": end - staged,
        "cpu": time.process_time() - cpu,
        "tmpfs": target.stat().st_size,
        "private": anonymous_bytes() - before,
        "tensors": len(weights),
    }
    print(json.dumps(figures), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()

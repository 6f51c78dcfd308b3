"""A memory cgroup of the benchmark's own, of either version, without swap; removed afterwards. Needs root."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
REMOVAL_SECONDS = 30


@dataclass(frozen=True, slots=True)
class MemoryCgroup:
    """Processes join it by writing their id into `members`."""

    path: Path
    unified: bool  # version 2

    @property
    def members(self) -> Path:
        return self.path / "cgroup.procs"

    def killed(self) -> int:
        """How many processes the kernel has killed in it for want of memory."""
        text = (self.path / ("memory.events" if self.unified else "memory.oom_control")).read_text(encoding="ascii")
        fields = (line.split() for line in text.splitlines())
        return next((int(value) for name, value in fields if name == "oom_kill"), 0)


@contextmanager
def limited(limit: int) -> Iterator[MemoryCgroup]:
    """A cgroup in which all processes together may use `limit` bytes. Raises RuntimeError where none can be made."""
    cgroup = _create()
    try:
        if cgroup.unified:
            _write(cgroup.path / "memory.max", limit)
            _write(cgroup.path / "memory.swap.max", 0)
        else:
            _write(cgroup.path / "memory.limit_in_bytes", limit)
            _write(cgroup.path / "memory.memsw.limit_in_bytes", limit)
        yield cgroup
    finally:
        _remove(cgroup)


def _create() -> MemoryCgroup:
    unified = (MOUNT / "cgroup.controllers").is_file()
    root = MOUNT if unified else MOUNT / "memory"
    path = root / f"cosyvoice-bench-{os.getpid()}-{time.monotonic_ns()}"
    try:
        if unified:
            _write(root / "cgroup.subtree_control", "+memory")
        path.mkdir()
    except OSError as error:
        message = f"no memory cgroup can be made in {root} ({error.strerror}): run this as root, outside of a container"
        raise RuntimeError(message) from error
    return MemoryCgroup(path, unified)


def _write(file: Path, value: object) -> None:
    """Accounting of swap may not be there: then there is nothing to limit either."""
    if file.exists():
        file.write_text(str(value), encoding="ascii")


def _remove(cgroup: MemoryCgroup) -> None:
    """The members, should there be any left, are the benchmark's own; a cgroup empties a moment after they ended."""
    deadline = time.monotonic() + REMOVAL_SECONDS
    while True:
        for member in cgroup.members.read_text(encoding="ascii").split():
            os.kill(int(member), signal.SIGKILL)
        try:
            cgroup.path.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return

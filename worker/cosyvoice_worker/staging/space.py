"""Whether a version fits, before the first byte is written: the arithmetic is in the message."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker import cgroup
from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail

PAGE_BYTES = 4096
# Directories, the manifest and the pointer files.
BOOKKEEPING_BYTES = 256 * 1024
# The stager itself: the interpreter, the copy buffers and what the kernel keeps for both.
STAGER_BYTES = 96 * 1024 * 1024

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Room:
    """What there is, in bytes: free in the tmpfs, held by other versions there, and the limits (None: no limit)."""

    free: int
    held: int
    size_limit: int
    memory_limit: int | None


def measure(root: Path, held: int, size_limit: int) -> Room:
    """The room in the file system of `root`, in which other versions hold `held` bytes."""
    status = os.statvfs(root)
    return Room(
        free=status.f_bavail * status.f_frsize,
        held=held,
        size_limit=size_limit,
        memory_limit=cgroup.memory_limit(),
    )


def needed_for(sizes: list[int]) -> int:
    """Bytes of tmpfs for files of `sizes`: whole pages."""
    return sum(-(-size // PAGE_BYTES) * PAGE_BYTES for size in sizes) + BOOKKEEPING_BYTES


def shortage(needed: int, room: Room) -> WorkerError | None:
    """Why `needed` bytes do not fit into `room`, or None. The most instructive reason comes first."""
    if needed + room.held > room.size_limit:
        held = f" + {_mib(room.held)} of versions in use" if room.held else ""
        return _short(
            Reason.OUT_OF_SPACE,
            f"the files need {_mib(needed)}{held}, spec.staging.sizeLimit is {_mib(room.size_limit)}: "
            f"set it to at least {_up(needed + room.held)}Mi",
            needed + room.held,
            room.size_limit,
        )
    if room.memory_limit is not None and needed + STAGER_BYTES > room.memory_limit:
        return _short(
            Reason.OUT_OF_MEMORY,
            f"the files need {_mib(needed)} of tmpfs, which counts as memory, and the stager {_mib(STAGER_BYTES)}, but "
            f"the memory limit of the stage container is {_mib(room.memory_limit)}: set it to at least "
            f"{_up(needed + STAGER_BYTES)}Mi",
            needed + STAGER_BYTES,
            room.memory_limit,
        )
    if needed > room.free:
        return _short(
            Reason.OUT_OF_SPACE,
            f"the files need {_mib(needed)}, the tmpfs has {_mib(room.free)} free: the node has not enough "
            "allocatable memory for it, or others use it",
            needed,
            room.free,
        )
    return None


def _short(reason: Reason, message: str, expected: int, actual: int) -> WorkerError:
    return fail(reason, Phase.STAGE, message, expected=f"{expected} bytes", actual=f"{actual} bytes")


def _up(count: int) -> int:
    return -(-count // MIB)


def _mib(count: int) -> str:
    return f"{count / MIB:.1f} MiB"

"""Whether a version fits, before the first byte is written: the arithmetic is in the message."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker import cgroup
from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError

PAGE_BYTES = 4096
# Directories, the manifest and the pointer files.
BOOKKEEPING_BYTES = 256 * 1024
# The stager itself: the interpreter, the copy buffers and what the kernel keeps for both.
STAGER_BYTES = 96 * 1024 * 1024

MIB = 1024 * 1024


class NoRoomError(WorkerError):
    """A version does not fit. `room`: it would if nothing else were there, so the version is not to blame."""

    def __init__(self, outcome: Outcome, room: bool = False) -> None:
        super().__init__(outcome)
        self.room = room


@dataclass(frozen=True, slots=True)
class Room:
    """What there is, in bytes.

    Free in the tmpfs; held by other versions there; the tmpfs' size limit; the container's memory limit; the memory
    that the node has available. None: no limit, or not known.
    """

    free: int
    held: int
    size_limit: int
    memory_limit: int | None
    available: int | None


def measure(root: Path, held: int, size_limit: int) -> Room:
    """The room in the file system of `root`, in which other versions hold `held` bytes."""
    status = os.statvfs(root)
    return Room(
        free=status.f_bavail * status.f_frsize,
        held=held,
        size_limit=size_limit,
        memory_limit=cgroup.memory_limit(),
        available=cgroup.memory_available(),
    )


def needed_for(sizes: list[int]) -> int:
    """Bytes of tmpfs for files of `sizes`: whole pages."""
    return sum(-(-size // PAGE_BYTES) * PAGE_BYTES for size in sizes) + BOOKKEEPING_BYTES


def shortage(needed: int, room: Room) -> NoRoomError | None:
    """Why `needed` bytes do not fit into `room`, or None. The most instructive reason comes first.

    What other versions hold counts as this container's memory whichever container wrote it: after a container's end
    its pages stay charged to the pod, whose limit is the sum of its containers' limits.
    """
    held = f" + {_mib(room.held)} of versions in use" if room.held else ""
    if needed + room.held > room.size_limit:
        return _short(
            Reason.OUT_OF_SPACE,
            f"the files need {_mib(needed)}{held}, spec.staging.sizeLimit is {_mib(room.size_limit)}: "
            f"set it to at least {_up(needed + room.held)}Mi",
            needed + room.held,
            room.size_limit,
            room=needed <= room.size_limit,
        )
    charged = needed + STAGER_BYTES
    if room.memory_limit is not None and charged + room.held > room.memory_limit:
        return _short(
            Reason.OUT_OF_MEMORY,
            f"the files need {_mib(needed)} of tmpfs{held}, which counts as memory, and the stager "
            f"{_mib(STAGER_BYTES)}, but the memory limit of the stage container is {_mib(room.memory_limit)}: set it "
            f"to at least {_up(charged + room.held)}Mi",
            charged + room.held,
            room.memory_limit,
            room=charged <= room.memory_limit,
        )
    if needed > room.free:
        return _short(
            Reason.OUT_OF_SPACE,
            f"the files need {_mib(needed)}, the tmpfs has {_mib(room.free)} free: the node has not enough "
            "allocatable memory for it, or others use it",
            needed,
            room.free,
            room=True,
        )
    if room.available is not None and charged > room.available:
        return _short(
            Reason.OUT_OF_MEMORY,
            f"the files need {_mib(needed)} of tmpfs, which counts as memory, and the stager {_mib(STAGER_BYTES)}, but "
            f"the node has only {_mib(room.available)} available: free memory on it, or let the pod go to another",
            charged,
            room.available,
            room=True,
        )
    return None


def _short(reason: Reason, message: str, expected: int, actual: int, *, room: bool) -> NoRoomError:
    outcome = Outcome(
        reason=reason, phase=Phase.STAGE, message=message, expected=f"{expected} bytes", actual=f"{actual} bytes"
    )
    return NoRoomError(outcome, room)


def _up(count: int) -> int:
    return -(-count // MIB)


def _mib(count: int) -> str:
    return f"{count / MIB:.1f} MiB"

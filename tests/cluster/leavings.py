"""What a worker holds while it has nothing to do: the same after an hour of trouble as before, or it leaks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosyvoice_worker.names import WEIGHTS_ROOT
from tests.cluster.memory import cgroup_of

ENGINE = b"cosyvoice_worker.engine"
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Held:
    """Counted from outside. `directories` are those of the tmpfs of the weights."""

    processes: int
    descriptors: int
    directories: tuple[str, ...]


def held(pod: dict[str, Any]) -> Held:
    """What the worker container of this pod holds; the descriptors are the front's."""
    own = front(pod)
    root = Path(f"/proc/{own}/root{WEIGHTS_ROOT}")
    return Held(
        processes=len(processes(pod)),
        descriptors=len(list(Path(f"/proc/{own}/fd").iterdir())),
        directories=tuple(sorted(entry.name for entry in root.iterdir() if entry.is_dir())),
    )


def processes(pod: dict[str, Any]) -> list[int]:
    """The processes of the worker container, by the machine's numbers."""
    return sorted(int(pid) for pid in (cgroup_of(pod, "worker") / "cgroup.procs").read_text().split())


def engines(pod: dict[str, Any]) -> list[int]:
    """Those that are engines."""
    return [pid for pid in processes(pod) if ENGINE in Path(f"/proc/{pid}/cmdline").read_bytes()]


def front(pod: dict[str, Any]) -> int:
    """The one that is no engine."""
    (own,) = set(processes(pod)) - set(engines(pod))
    return own


def resident(pid: int) -> int:
    """Bytes of memory that the process has in use, of its own and shared."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE

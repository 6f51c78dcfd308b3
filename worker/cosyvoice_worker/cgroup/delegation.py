"""Cgroups of our own below the container's, where the runtime made that writable: `front`, and one for each engine.

A limit then stands on an engine alone: the front is never slowed down, and an engine that takes too much ends alone
instead of with its whole container (memory.oom.group, which the kubelet sets there, is for a limit of the container).

Processes may only be in leaves (cgroup v2, "No Internal Process Constraint"), so the front moves itself and everything
else of the container down before it hands the memory controller on.
"""

from __future__ import annotations

import contextlib
import errno
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker.cgroup.limits import used_in
from cosyvoice_worker.cgroup.places import ENGINE, FRONT, MEMBERSHIP, MOUNT, integer, is_unified, text

PROCESSES = "cgroup.procs"
SUBTREE = "cgroup.subtree_control"
HIGH = "memory.high"
MAX = "memory.max"

OWN_NAMESPACE = "0::/"
# A process that is started in the container meanwhile (kubectl exec) keeps the kernel from handing the controller on.
TRIES = 5


@dataclass(frozen=True, slots=True)
class Undelegated:
    """Why there are none; a part of a sentence."""

    reason: str


class Leaf:
    """The cgroup of one engine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, pid: int) -> None:
        """Move the process in. What it holds already stays charged to where it was. Raises OSError."""
        _write(self.path / PROCESSES, str(pid))

    def limit(self, count: int | None) -> None:
        """Let the engine have `count` bytes, or (None) what the container's limit leaves. Raises OSError."""
        _write(self.path / MAX, "max" if count is None else str(count))

    def throttle(self, high: int) -> None:
        """Slow the engine down from `high` bytes on. Raises OSError."""
        _write(self.path / HIGH, str(high))

    def high(self) -> int | None:
        """From how many bytes on it is slowed down now; None where it is not."""
        return integer(self.path / HIGH)

    def used(self) -> int:
        """Bytes charged here that the kernel could not get back by dropping file pages."""
        return used_in(self.path)

    def remove(self) -> None:
        """Its engine has ended. What the kernel has not let go of yet is left: it goes with the container."""
        with contextlib.suppress(OSError):
            self.path.rmdir()


class Leaves:
    """Below the container's cgroup `base`, which has no processes of its own any more."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._count = 0

    def engine(self, *, high: int | None, limit: int | None) -> Leaf:
        """A cgroup for an engine with these bytes as memory.high and memory.max (None: no such). Raises OSError."""
        self._count += 1
        leaf = Leaf(self._base / f"{ENGINE}{self._count}")
        leaf.path.mkdir()
        try:
            if high is not None:
                leaf.throttle(high)
            leaf.limit(limit)
        except OSError:
            leaf.remove()
            raise
        return leaf


def delegate(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> Leaves | Undelegated:
    """Take over the container's cgroup, and move every process of the container into its leaf `front`.

    Only where `mount` can be nothing but a container's own cgroup: the root of a namespace, and not of the node. Found
    out by doing it, and undone where a step fails. Never raises.
    """
    if not is_unified(mount):
        return Undelegated("this node has cgroup v1")
    if text(membership) != OWN_NAMESPACE or not (mount / HIGH).exists():
        return Undelegated("the container has no cgroup namespace of its own with the memory controller")
    front = mount / FRONT
    try:
        front.mkdir()
    except OSError as error:
        return Undelegated(f"the container's cgroup is not writable ({error.strerror})")
    try:
        _hand_on(mount, front)
    except OSError as error:
        with contextlib.suppress(OSError):
            _move_all(front, mount)
            front.rmdir()
        return Undelegated(f"the container's cgroup cannot be divided ({error.strerror})")
    return Leaves(mount)


def _hand_on(base: Path, front: Path) -> None:
    for left in reversed(range(TRIES)):
        _move_all(base, front)
        try:
            _write(base / SUBTREE, "+memory")
        except OSError as error:
            if error.errno != errno.EBUSY or not left:
                raise
        else:
            return


def _move_all(source: Path, target: Path) -> None:
    """Every process of `source`; 0 is one of another process namespace, which nobody here can name."""
    for pid in text(source / PROCESSES).split():
        if pid != "0":
            with contextlib.suppress(ProcessLookupError):
                _write(target / PROCESSES, pid)


def _write(file: Path, content: str) -> None:
    with file.open("w", encoding="ascii") as kernel:
        kernel.write(content)

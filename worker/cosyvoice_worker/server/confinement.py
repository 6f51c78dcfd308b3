"""What the kernel holds an engine to: its own cgroup where we may make one, and the wish for memory.high."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from cosyvoice_worker.cgroup import RESERVE_BYTES, memory_limit
from cosyvoice_worker.cgroup.delegation import Leaf, Leaves, Undelegated, delegate
from cosyvoice_worker.cgroup.high import MemoryHigh, read_back

# What an engine's cgroup is charged beyond the memory that it knows of: page tables, the kernel's structures for it.
KERNEL_BYTES = 64 * 1024 * 1024

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hold:
    """One engine's cgroup. `alone` is its limit in bytes while there is no second engine (None: none)."""

    leaf: Leaf
    alone: int | None

    def bound(self, growth: int | None) -> None:
        """Let the engine take `growth` bytes more, or (None) what an only one may. One that has ended takes nothing."""
        try:
            self.leaf.limit(self.alone if growth is None else self.leaf.used() + growth + KERNEL_BYTES)
        except OSError as error:
            log.warning("the limit of an engine's cgroup stays as it is: %s", error)


class Confinement:
    """Of all engines of this container. `wanted` is memory.high in bytes, `limit` the container's (None: none)."""

    def __init__(self, wanted: int | None, own: Leaves | Undelegated, limit: int | None) -> None:
        self._wanted = wanted
        self._own = own
        self._alone = None if limit is None else max(limit - RESERVE_BYTES, limit // 2)
        self._newest: Leaf | None = None

    def hold(self, pid: int, memory_bytes: int | None) -> Hold | None:
        """Put the engine `pid` into a cgroup of its own; None where it stays in the container's.

        `memory_bytes` is what a second engine may hold for itself.
        """
        if isinstance(self._own, Undelegated):
            return None
        limit = self._alone if memory_bytes is None else memory_bytes + KERNEL_BYTES
        try:
            leaf = self._own.engine(high=self._wanted, limit=limit)
            try:
                leaf.add(pid)
            except OSError:
                leaf.remove()
                raise
        except OSError as error:
            log.warning("the engine stays in the cgroup of the front: %s", error, extra={"engine": pid})
            return None
        self._newest = leaf
        return Hold(leaf, self._alone)

    def memory_high(self) -> MemoryHigh | None:
        """What came of the wish; None where there is none."""
        if self._wanted is None:
            return None
        if isinstance(self._own, Undelegated):
            return read_back(self._wanted, None, self._own.reason)
        if self._newest is None or not self._newest.path.exists():
            return MemoryHigh(wanted=self._wanted, state="NotApplied", reason="there is no engine to hold")
        return read_back(self._wanted, self._newest.path)


def confine(wanted: int | None) -> Confinement:
    """Find out what this container lets us do, and do it."""
    own = delegate()
    if isinstance(own, Leaves):
        log.info("engines get cgroups of their own", extra={"memory_high": wanted})
    elif wanted is not None:
        log.info("memory.high is left to the node: %s", own.reason, extra={"memory_high": wanted})
    return Confinement(wanted, own, memory_limit())

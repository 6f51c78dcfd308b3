"""What the kernel holds an engine to: its own cgroup where we may make one, and the wish for memory.high."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from cosyvoice_worker.cgroup import RESERVE_BYTES, memory_limit
from cosyvoice_worker.cgroup.delegation import Leaf, Leaves, Undelegated, delegate
from cosyvoice_worker.cgroup.high import PAGE_BYTES, MemoryHigh, read_back

# What an engine's cgroup is charged beyond the memory that it knows of: page tables, the kernel's structures for it.
KERNEL_BYTES = 64 * 1024 * 1024

# As often as the node agent looks, which does the same where there is no cgroup of our own.
KEEP_SECONDS = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hold:
    """One engine's cgroup. `settle` makes it that of an only engine."""

    leaf: Leaf
    settle: Callable[[Leaf], None]

    def bound(self, growth: int | None) -> None:
        """Let the engine take `growth` bytes more, or (None) what an only one may. One that has ended takes nothing."""
        try:
            if growth is None:
                self.settle(self.leaf)
            else:
                self.leaf.limit(self.leaf.used() + growth + KERNEL_BYTES)
        except OSError as error:
            log.warning("the limits of an engine's cgroup stay as they are: %s", error)


class Confinement:
    """Of all engines of this container. `wanted` is memory.high in bytes, `limit` the container's (None: none).

    memory.high is for the engine that serves. One that takes more than its share while it loads is to end, and soon: it
    would otherwise be slowed down until its time to load is over.
    """

    def __init__(self, wanted: int | None, own: Leaves | Undelegated, limit: int | None) -> None:
        self._wanted = wanted
        self._own = own
        self._alone = None if limit is None else max(limit - RESERVE_BYTES, limit // 2)
        self._settled: Leaf | None = None
        self._told: MemoryHigh | None = None
        self._given_up = False

    def hold(self, pid: int, memory_bytes: int | None) -> Hold | None:
        """Put the engine `pid` into a cgroup of its own; None where it stays in the container's.

        `memory_bytes` is what a second engine may hold for itself.
        """
        if isinstance(self._own, Undelegated):
            return None
        try:
            leaf = self._own.engine(high=None, limit=None if memory_bytes is None else memory_bytes + KERNEL_BYTES)
            try:
                if memory_bytes is None:
                    self._settle(leaf)
                leaf.add(pid)
            except OSError:
                leaf.remove()
                raise
        except OSError as error:
            log.warning("the engine stays in the cgroup of the front: %s", error, extra={"engine": pid})
            return None
        return Hold(leaf, self._settle)

    def memory_high(self) -> MemoryHigh | None:
        """What came of the wish; None where there is none. Between two engines it is what came of it for the last."""
        if self._wanted is None:
            return None
        if isinstance(self._own, Undelegated):
            return read_back(self._wanted, None, self._own.reason)
        if self._settled is not None and self._settled.path.exists():
            self._told = read_back(self._wanted, self._settled.path)
        return self._told or MemoryHigh(wanted=self._wanted, state="NotApplied", reason="there is no engine to hold")

    def keep(self) -> None:
        """Set memory.high again where something has changed it on the cgroup of the engine that serves."""
        leaf = self._settled
        if self._wanted is None or leaf is None or not leaf.path.exists():
            return
        high = self._wanted - self._wanted % PAGE_BYTES
        found = leaf.high()
        if found == high:
            return
        why = "the kernel keeps another value"
        try:
            leaf.throttle(high)
        except OSError as error:
            why = str(error)
        fields = {"found": found or "max", "memory_high": high}
        if leaf.high() == high:
            self._given_up = False
            log.warning("memory.high was changed, and is set again", extra=fields)
        elif not self._given_up:
            self._given_up = True
            log.warning("memory.high was changed, and cannot be set again: %s", why, extra=fields)

    def _settle(self, leaf: Leaf) -> None:
        leaf.limit(self._alone)
        if self._wanted is not None:
            leaf.throttle(self._wanted)
        self._settled = leaf


async def keep(confinement: Confinement) -> None:
    """Look again and again, until cancelled."""
    while True:
        await asyncio.sleep(KEEP_SECONDS)
        confinement.keep()


def confine(wanted: int | None) -> Confinement:
    """Find out what this container lets us do, and do it."""
    own = delegate()
    if isinstance(own, Leaves):
        log.info("engines get cgroups of their own", extra={"memory_high": wanted})
    elif wanted is not None:
        log.info("memory.high is left to the node: %s", own.reason, extra={"memory_high": wanted})
    return Confinement(wanted, own, memory_limit())

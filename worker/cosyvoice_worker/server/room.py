"""Whether a second engine has room beside the one that serves, and how much each of them may take meanwhile. Pure.

On cgroup v2 the kernel ends all processes of a container when one takes too much. So a second engine is refused where
there is no room for it, and both are bounded while there are two.
"""

from __future__ import annotations

from dataclasses import dataclass

from cosyvoice_worker.cgroup import RESERVE_BYTES
from cosyvoice_worker.outcome import Outcome, Phase, Reason

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """In bytes: the container's limit, what is used of it, and what the first engine holds and has held at most.

    `is_high`: the limit is memory.high, beyond which nobody is ended and everybody waits.
    """

    limit: int
    used: int
    first: int
    first_peak: int
    is_high: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """In bytes: what the second engine may hold, and by how much the first one may still grow."""

    second: int
    first_growth: int


def share(memory: Memory) -> Shares | Outcome:
    """The shares of two engines, or why there is no room for two.

    The second one will need what the first has needed for its own load and its requests, and the first one may need as
    much again as it has had. What is left beyond that is divided.
    """
    again = max(0, memory.first_peak - memory.first)
    needed = memory.first_peak + again
    left = memory.limit - memory.used - RESERVE_BYTES
    if left < needed:
        short = needed - left
        limit, field = ("memory.high", "memoryHigh") if memory.is_high else ("memory limit", "resources.limits.memory")
        message = (
            f"no room for a second engine: it needs {_mib(memory.first_peak)}, as much as the one that serves has had, "
            f"and that one may take {_mib(again)} more; of the worker container's {limit} of "
            f"{_mib(memory.limit)}, {_mib(memory.used)} are used and {_mib(RESERVE_BYTES)} kept back, which leaves "
            f"{_mib(max(0, left))}: raise spec.worker.{field} to at least "
            f"{-(-(memory.limit + short) // MIB)}Mi"
        )
        return Outcome(
            reason=Reason.OUT_OF_MEMORY,
            phase=Phase.MAP,
            message=message,
            expected=f"{needed} bytes",
            actual=f"{max(0, left)} bytes",
        )
    spare = (left - needed) // 2
    return Shares(second=memory.first_peak + spare, first_growth=again + spare)


def _mib(count: int) -> str:
    return f"{count / MIB:.1f} MiB"

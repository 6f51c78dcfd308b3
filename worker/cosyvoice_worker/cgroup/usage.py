"""What Prometheus is told of the container's memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker.cgroup.limits import memory_limit
from cosyvoice_worker.cgroup.places import ENGINE, MEMBERSHIP, MOUNT, containers, integer, keyed


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUsage:
    """In bytes. `working_set` is what the kubelet evicts by; None: the kernel has no such limit, or shows no number."""

    current: int | None
    working_set: int | None
    high: int | None
    max: int | None


def memory_usage(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> MemoryUsage:
    """Look once. `high` is the smallest there is: on the container, or on an engine's cgroup below it."""
    v2, v1 = containers(mount, membership)
    current, statistics = integer(v2 / "memory.current"), keyed(v2 / "memory.stat")
    inactive = statistics.get("inactive_file", 0)
    if current is None:
        # Version 1 counts the cgroups below only in what it calls total.
        current, statistics = integer(v1 / "memory.usage_in_bytes"), keyed(v1 / "memory.stat")
        inactive = statistics.get("total_inactive_file", 0)
    highs = [integer(place / "memory.high") for place in (v2, *v2.glob(f"{ENGINE}*"))]
    return MemoryUsage(
        current=current,
        working_set=None if current is None else max(0, current - inactive),
        high=min((high for high in highs if high is not None), default=None),
        max=memory_limit(mount, membership),
    )

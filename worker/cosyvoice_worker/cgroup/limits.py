"""What the container may use, and what it uses: `cpu_count` and MemTotal tell of the node."""

from __future__ import annotations

from pathlib import Path

from cosyvoice_worker.cgroup.places import MEMBERSHIP, MOUNT, container, containers, directories, integer, keyed, text

NODE_MEMORY = Path("/proc/meminfo")

# What a bound on an engine leaves of the limit: for the front, the kernel's structures for this container, and the page
# tables of the mapped weights.
RESERVE_BYTES = 192 * 1024 * 1024

# cgroup v1 writes "no limit" as the largest multiple of the page size.
V1_UNLIMITED = 1 << 62


def memory_limit(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> int | None:
    """The smallest memory limit on the container in bytes; None without one."""
    limits = [integer(directory / "memory.max") for directory in directories(mount, membership, "")]
    limits += [
        integer(directory / "memory.limit_in_bytes")
        for directory in directories(mount / "memory", membership, "memory")
    ]
    return min((limit for limit in limits if limit is not None and limit < V1_UNLIMITED), default=None)


def memory_high(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> int | None:
    """From how many bytes on the kernel slows the container down; None where it does not, as on version 1."""
    return integer(container(mount, membership) / "memory.high")


def memory_used(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> int:
    """Bytes charged to the container that the kernel could not get back by dropping file pages."""
    v2, v1 = containers(mount, membership)
    used = integer(v2 / "memory.current") or integer(v1 / "memory.usage_in_bytes") or 0
    return max(0, used - _droppable(keyed(v2 / "memory.stat") or keyed(v1 / "memory.stat")))


def used_in(cgroup: Path) -> int:
    """The same for one cgroup of version 2."""
    return max(0, (integer(cgroup / "memory.current") or 0) - _droppable(keyed(cgroup / "memory.stat")))


def memory_available(node_memory: Path = NODE_MEMORY) -> int | None:
    """Bytes that the node could still give without swapping (MemAvailable); None where it does not say."""
    for line in text(node_memory).splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def cpu_quota(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> float | None:
    """The smallest CPU quota on the container in CPUs (0.5 is half of one); None without one."""
    quotas = []
    for directory in directories(mount, membership, ""):
        quota, _, period = text(directory / "cpu.max").partition(" ")
        quotas.append(_ratio(quota, period))
    quotas += [
        _ratio(text(directory / "cpu.cfs_quota_us"), text(directory / "cpu.cfs_period_us"))
        for directory in directories(mount / "cpu", membership, "cpu")
    ]
    return min((quota for quota in quotas if quota is not None), default=None)


def _droppable(statistics: dict[str, int]) -> int:
    return sum(statistics.get(name, 0) for name in ("inactive_file", "active_file"))


def _ratio(quota: str, period: str) -> float | None:
    """`quota / period`; None for "max", -1 and what is not there."""
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) > 0 else None

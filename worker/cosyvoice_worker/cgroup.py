"""What the container may use, from the cgroup files of either version: `cpu_count` and MemTotal tell of the node.

https://docs.kernel.org/admin-guide/cgroup-v2.html, https://docs.kernel.org/admin-guide/cgroup-v1/memory.html and
https://docs.kernel.org/scheduler/sched-bwc.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
NODE_MEMORY = Path("/proc/meminfo")

# What a bound on an engine leaves of the limit: for the front, the kernel's structures for this container, and the page
# tables of the mapped weights.
RESERVE_BYTES = 192 * 1024 * 1024

# cgroup v1 writes "no limit" as the largest multiple of the page size.
V1_UNLIMITED = 1 << 62


def memory_limit(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> int | None:
    """The smallest memory limit on this process in bytes; None without one."""
    limits = [_integer(directory / "memory.max") for directory in _directories(mount, membership, "")]
    limits += [
        _integer(directory / "memory.limit_in_bytes")
        for directory in _directories(mount / "memory", membership, "memory")
    ]
    return min((limit for limit in limits if limit is not None and limit < V1_UNLIMITED), default=None)


def memory_used(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> int:
    """Bytes charged to this process' cgroup that the kernel could not get back by dropping file pages."""
    v2 = _own(_directories(mount, membership, ""))
    v1 = _own(_directories(mount / "memory", membership, "memory"))
    used = _integer(v2 / "memory.current") or _integer(v1 / "memory.usage_in_bytes") or 0
    names = ("inactive_file", "active_file")
    statistics = _text(v2 / "memory.stat") or _text(v1 / "memory.stat")
    pairs = [line.split() for line in statistics.splitlines()]
    return max(0, used - sum(int(value) for name, value in pairs if name in names))


def memory_available(node_memory: Path = NODE_MEMORY) -> int | None:
    """Bytes that the node could still give without swapping (MemAvailable); None where it does not say."""
    for line in _text(node_memory).splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def cpu_quota(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> float | None:
    """The smallest CPU quota on this process in CPUs (0.5 is half of one); None without one."""
    quotas = []
    for directory in _directories(mount, membership, ""):
        quota, _, period = _text(directory / "cpu.max").partition(" ")
        quotas.append(_ratio(quota, period))
    quotas += [
        _ratio(_text(directory / "cpu.cfs_quota_us"), _text(directory / "cpu.cfs_period_us"))
        for directory in _directories(mount / "cpu", membership, "cpu")
    ]
    return min((quota for quota in quotas if quota is not None), default=None)


def _directories(mount: Path, membership: Path, controller: str) -> Iterator[Path]:
    """This process' cgroup below `mount` and all above it. `controller` is "" for version 2.

    In a container the mount itself may be the container's cgroup while the membership still names the node's path.
    """
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            inside = Path(path.lstrip("/"))
            yield from (mount / part for part in (inside, *inside.parents))
            return
    yield mount


def _own(directories: Iterator[Path]) -> Path:
    """The innermost that can be seen from here."""
    candidates = list(directories)
    return next((directory for directory in candidates if directory.is_dir()), candidates[-1])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _integer(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None


def _ratio(quota: str, period: str) -> float | None:
    """`quota / period`; None for "max", -1 and what is not there."""
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) > 0 else None

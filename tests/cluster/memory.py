"""What the kernel says of a container's memory: the most it had, the most it may have, how often it asked in vain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dev.cluster import cgroups


@dataclass(frozen=True)
class Usage:
    """In bytes; `refused` counts how often the limit was hit, so that something had to go or the container waited."""

    peak: int
    limit: int
    refused: int


def usage(pod: dict[str, Any], container: str) -> Usage:
    """The memory of one container of a pod that runs."""
    directory = cgroup_of(pod, container)
    return _of_v2(directory) if cgroups.hierarchies().unified else _of_v1(directory)


def cgroup_of(pod: dict[str, Any], container: str) -> Path:
    """The cgroup of one container of a pod that runs, where memory is counted."""
    statuses = [*pod["status"].get("initContainerStatuses", []), *pod["status"]["containerStatuses"]]
    found = next(status for status in statuses if status["name"] == container)
    hierarchies = cgroups.hierarchies()
    root = hierarchies.v2 if hierarchies.unified else hierarchies.v1["memory"]
    if root is None:
        raise LookupError("no cgroup hierarchy has the memory controller")
    (directory,) = root.rglob(found["containerID"].removeprefix("containerd://"))
    return directory


def _of_v1(directory: Path) -> Usage:
    return Usage(
        peak=int((directory / "memory.max_usage_in_bytes").read_text()),
        limit=int((directory / "memory.limit_in_bytes").read_text()),
        refused=int((directory / "memory.failcnt").read_text()),
    )


def _of_v2(directory: Path) -> Usage:
    events = dict(line.split() for line in (directory / "memory.events").read_text().splitlines())
    return Usage(
        peak=int((directory / "memory.peak").read_text()),
        limit=int((directory / "memory.max").read_text()),
        refused=int(events["max"]),
    )

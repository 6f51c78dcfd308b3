"""The cluster's cgroups: limits for the pods, and the one record of which processes belong to the cluster.

A process started into a cgroup does not leave it by forking or by losing its parent, so whatever still runs is found
here, even when every file of the cluster is gone. Works on cgroup v1 (one hierarchy a controller), on v1 with a v2
hierarchy beside it, and on v2 alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dev.cluster.errors import ClusterError
from dev.cluster.plan import Cluster

NEEDED_CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
# The kubelet insists on what the machine has of these.
WELCOME_CONTROLLERS = ("hugetlb", "io")
# What a v1 cpuset must have before a process can enter it; v2 inherits both.
CPUSET_FILES = ("cpuset.cpus", "cpuset.mems")
SUBTREE_CONTROL = "cgroup.subtree_control"
REMOVAL_SECONDS = 20.0


@dataclass(frozen=True)
class Hierarchies:
    """Mount points: `v1` by controller (or `name=…`), `v2` or None."""

    v1: dict[str, Path]
    v2: Path | None

    @property
    def unified(self) -> bool:
        """True where cgroup v2 carries the controllers."""
        return not any(controller in self.v1 for controller in NEEDED_CONTROLLERS)

    @property
    def roots(self) -> tuple[Path, ...]:
        """Every hierarchy once, controllers mounted together counting as one."""
        found = list(dict.fromkeys(self.v1.values()))
        return tuple([*found, self.v2] if self.v2 else found)

    @property
    def tracking(self) -> Path:
        """The hierarchy whose cgroups say what belongs to the cluster."""
        root = self.v2 if self.unified else self.v1.get("pids")
        if root is None:
            raise ClusterError("no cgroup hierarchy with the pids controller is mounted on /sys/fs/cgroup: mount one")
        return root


def parse(mountinfo: str) -> Hierarchies:
    """The hierarchies that /proc/self/mountinfo shows below /sys/fs/cgroup."""
    v1: dict[str, Path] = {}
    v2 = None
    for line in mountinfo.splitlines():
        mount, _, rest = line.partition(" - ")
        where = Path(mount.split()[4])
        kind, _, options = rest.split()[:3]
        if not where.is_relative_to("/sys/fs/cgroup"):
            continue
        if kind == "cgroup2":
            v2 = v2 or where
        elif kind == "cgroup":
            for option in options.split(","):
                if option not in ("rw", "ro", "xattr", "clone_children") and not option.startswith("release_agent="):
                    v1.setdefault(option, where)
    return Hierarchies(v1, v2)


def hierarchies() -> Hierarchies:
    return parse(Path("/proc/self/mountinfo").read_text())


def create(cluster: Cluster) -> Path:
    """Make the cgroups of the cluster and its nodes; returns the `cgroup.procs` file for the daemons."""
    found = hierarchies()
    wanted = [cluster.cgroup, *(node.cgroup for node in cluster.nodes)]
    if found.unified:
        _enable_controllers(found.tracking)
    for root in found.roots if not found.unified else (found.tracking,):
        for name in wanted:
            (root / name).mkdir(exist_ok=True)
            _copy_cpuset(root, root / name)
    if found.unified:
        _enable_controllers(found.tracking / cluster.cgroup)
    daemons = found.tracking / cluster.cgroup / "daemons"
    daemons.mkdir(exist_ok=True)
    _copy_cpuset(found.tracking, daemons)
    return daemons / "cgroup.procs"


def enabled_controllers() -> list[str]:
    """The controllers that cgroups below the root have: v2 only, where that is a setting."""
    found = hierarchies()
    return (found.tracking / SUBTREE_CONTROL).read_text().split() if found.unified else []


def keep_controllers(kept: list[str]) -> None:
    """Disable the controllers that are enabled below the root and not among those kept."""
    for controller in enabled_controllers():
        if controller not in kept:
            (hierarchies().tracking / SUBTREE_CONTROL).write_text(f"-{controller}")


def members(cluster: Cluster) -> tuple[int, ...]:
    """Every process of the cluster: daemons, shims and what runs in the pods."""
    pids: list[int] = []
    for directory in _subtree(hierarchies().tracking / cluster.cgroup):
        try:
            pids += map(int, (directory / "cgroup.procs").read_text().split())
        except FileNotFoundError:
            continue  # removed while we were walking
    return tuple(pids)


def remove(cluster: Cluster) -> None:
    """Remove the cluster's cgroups from every hierarchy. Their processes must have been ended before."""
    deadline = time.monotonic() + REMOVAL_SECONDS
    for root in hierarchies().roots:
        while True:
            try:
                for directory in reversed(list(_subtree(root / cluster.cgroup))):
                    directory.rmdir()
                break
            except OSError as error:
                # The kernel lets go of a dead process a moment after it has left cgroup.procs.
                if time.monotonic() > deadline:
                    raise ClusterError(f"could not remove the cgroup {root / cluster.cgroup}: {error}") from error
                time.sleep(0.05)


def _subtree(top: Path) -> Iterator[Path]:
    """The directory and everything below it, parents first; nothing if there is none."""
    for directory, _, _ in os.walk(top):
        yield Path(directory)


def _copy_cpuset(source: Path, target: Path) -> None:
    for name in CPUSET_FILES:
        if (source / name).exists() and not (target / name).read_text().strip():
            (target / name).write_text((source / name).read_text())


def _enable_controllers(directory: Path) -> None:
    available = (directory / "cgroup.controllers").read_text().split()
    missing = [controller for controller in NEEDED_CONTROLLERS if controller not in available]
    if missing:
        raise ClusterError(
            f"{directory}: the cgroup controllers {', '.join(missing)} are needed and not available there"
        )
    wanted = [controller for controller in (*NEEDED_CONTROLLERS, *WELCOME_CONTROLLERS) if controller in available]
    (directory / SUBTREE_CONTROL).write_text(" ".join(f"+{controller}" for controller in wanted))

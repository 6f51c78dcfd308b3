"""Which cgroup hierarchies a machine has, read from its mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.cluster import cgroups
from dev.cluster.errors import ClusterError

OTHER = "22 1 8:1 / / rw,relatime - ext4 /dev/vda rw\n30 22 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
V1 = OTHER + (
    "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "32 30 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "33 30 0:29 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "34 30 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/lib/x,name=systemd\n"
)
HYBRID = V1 + "35 30 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
V2 = "35 30 0:31 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
ELSEWHERE = "36 22 0:28 / /var/chroot/cgroup/memory rw - cgroup cgroup rw,memory\n"


def test_v1_hierarchies_are_found_by_controller() -> None:
    found = cgroups.parse(V1)

    assert found.v1["cpuacct"] == found.v1["cpu"] == Path("/sys/fs/cgroup/cpu,cpuacct")
    assert found.v1["name=systemd"] == Path("/sys/fs/cgroup/systemd")
    assert set(found.v1) == {"cpu", "cpuacct", "memory", "pids", "name=systemd"}


def test_controllers_mounted_together_are_one_root() -> None:
    assert cgroups.parse(V1).roots.count(Path("/sys/fs/cgroup/cpu,cpuacct")) == 1


@pytest.mark.parametrize(
    ("mounts", "unified", "tracking"),
    [
        (V1, False, "/sys/fs/cgroup/pids"),
        (HYBRID, False, "/sys/fs/cgroup/pids"),
        (V2, True, "/sys/fs/cgroup"),
    ],
)
def test_processes_are_tracked_where_the_controllers_are(mounts: str, unified: bool, tracking: str) -> None:
    found = cgroups.parse(mounts)

    assert found.unified is unified
    assert found.tracking == Path(tracking)


def test_the_v2_hierarchy_beside_v1_is_cleaned_too() -> None:
    assert Path("/sys/fs/cgroup/unified") in cgroups.parse(HYBRID).roots


def test_hierarchies_mounted_elsewhere_are_left_alone() -> None:
    assert cgroups.parse(V1 + ELSEWHERE) == cgroups.parse(V1)


def test_a_machine_without_cgroups_is_told_what_to_mount() -> None:
    with pytest.raises(ClusterError, match="no cgroup hierarchy with the pids controller is mounted"):
        _ = cgroups.parse(OTHER).tracking

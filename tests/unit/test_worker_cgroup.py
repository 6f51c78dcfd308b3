"""The container's limits, from both versions of the cgroup files and from every place they are seen at."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosyvoice_worker import cgroup


class Files:
    """A cgroup mount and this process' membership in it."""

    def __init__(self, folder: Path) -> None:
        self.mount = folder / "cgroup"
        self.mount.mkdir()
        self.membership = folder / "membership"
        self.membership.write_text("0::/\n")

    def write(self, path: str, text: object) -> None:
        file = self.mount / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


V1_MEMBERSHIP = "9:name=systemd:/x\n4:memory:/kubepods/pod1/c1\n2:cpu,cpuacct:/kubepods/pod1/c1\n0::/\n"


def test_without_any_file_nothing_is_limited(files):
    assert cgroup.memory_limit(files.mount, files.membership) is None
    assert cgroup.cpu_quota(files.mount, files.membership) is None
    assert cgroup.memory_used(files.mount, files.membership) == 0


@pytest.mark.parametrize(("text", "limit"), [("max", None), ("8589934592", 2**33)])
def test_version_2_in_a_namespace_of_its_own(files, text, limit):
    files.write("memory.max", text)

    assert cgroup.memory_limit(files.mount, files.membership) == limit


def test_the_smallest_limit_on_the_way_up_counts(files):
    files.membership.write_text("0::/kubepods/pod1/c1\n")
    files.write("kubepods/pod1/memory.max", 3000)
    files.write("kubepods/pod1/c1/memory.max", 5000)
    files.write("kubepods/pod1/cpu.max", "150000 100000")
    files.write("kubepods/pod1/c1/cpu.max", "max 100000")

    assert cgroup.memory_limit(files.mount, files.membership) == 3000
    assert cgroup.cpu_quota(files.mount, files.membership) == 1.5


@pytest.mark.parametrize("folder", ["", "kubepods/pod1/c1/"], ids=["seen as the mount", "seen by its path"])
def test_version_1_with_and_without_a_namespace(files, folder):
    files.membership.write_text(V1_MEMBERSHIP)
    files.write(f"memory/{folder}memory.limit_in_bytes", 4096)
    files.write(f"cpu/{folder}cpu.cfs_quota_us", 50000)
    files.write(f"cpu/{folder}cpu.cfs_period_us", 100000)

    assert cgroup.memory_limit(files.mount, files.membership) == 4096
    assert cgroup.cpu_quota(files.mount, files.membership) == 0.5


def test_version_1_writes_no_limit_as_a_huge_number_and_no_quota_as_minus_one(files):
    files.membership.write_text(V1_MEMBERSHIP)
    files.write("memory/memory.limit_in_bytes", 9223372036854771712)
    files.write("cpu/cpu.cfs_quota_us", -1)
    files.write("cpu/cpu.cfs_period_us", 100000)

    assert cgroup.memory_limit(files.mount, files.membership) is None
    assert cgroup.cpu_quota(files.mount, files.membership) is None


@pytest.mark.parametrize(
    ("membership", "folder", "current"),
    [("0::/\n", "", "memory.current"), (V1_MEMBERSHIP, "memory/", "memory.usage_in_bytes")],
    ids=["version 2", "version 1"],
)
def test_file_pages_that_can_be_dropped_do_not_count_as_used(files, membership, folder, current):
    files.membership.write_text(membership)
    files.write(f"{folder}{current}", 10_000)
    files.write(f"{folder}memory.stat", "anon 4000\ninactive_file 5000\nactive_file 1000\nshmem 0")

    assert cgroup.memory_used(files.mount, files.membership) == 4000


def test_what_the_node_has_available_is_read_from_its_memory_information(tmp_path):
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:       24684092 kB\nMemFree:          100 kB\nMemAvailable:   23207168 kB\n")

    assert cgroup.memory_available(file) == 23207168 * 1024
    assert cgroup.memory_available(tmp_path / "absent") is None


@pytest.mark.parametrize("path", ["/../elsewhere", "/pod1/../../elsewhere"])
def test_a_process_outside_of_its_namespace_goes_by_the_mount(files, path):
    files.write("memory.max", 5000)
    (files.mount.parent / "elsewhere").mkdir()
    (files.mount.parent / "elsewhere" / "memory.max").write_text("7000")
    files.membership.write_text(f"0::{path}\n")

    assert cgroup.memory_limit(files.mount, files.membership) == 5000


def test_a_name_that_is_no_ascii_is_one_too(files):
    files.membership.write_bytes("0::/café\n".encode())
    files.write("café/memory.max", 3000)

    assert cgroup.memory_limit(files.mount, files.membership) == 3000

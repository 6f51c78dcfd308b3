"""What the kernel counts of a container, in each layout that one meets."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosyvoice_worker.cgroup import oom_kills, pressure_seconds, throttled

V2 = "low 0\nhigh 12\nmax 3\noom 2\noom_kill 2\noom_group_kill 0\n"
V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"

LAYOUTS: dict[str, tuple[str, str, str, int | None]] = {
    "v2, own namespace": ("0::/\n", "memory.events", V2, 2),
    "v2, host namespace": ("0::/kubepods/pod1/a\n", "kubepods/pod1/a/memory.events", V2, 2),
    "v2, seen from the front's own cgroup": ("0::/front\n", "memory.events", V2, 2),
    "v1, host paths visible": (
        "5:cpu,cpuacct:/a\n4:memory:/kubepods/a\n",
        "memory/kubepods/a/memory.oom_control",
        V1,
        5,
    ),
    "v1, own cgroup mounted as root": ("4:memory:/kubepods/a\n", "memory/memory.oom_control", V1, 5),
    "an old kernel without the counter": ("4:memory:/\n", "memory/memory.oom_control", "under_oom 0\n", None),
    "no memory controller": ("0::/\n", "cgroup.procs", "", None),
}


@pytest.mark.parametrize(("own", "file", "content", "kills"), LAYOUTS.values(), ids=LAYOUTS)
def test_the_counter_is_found(tmp_path: Path, own: str, file: str, content: str, kills: int | None) -> None:
    (tmp_path / "own").write_text(own)
    target = tmp_path / "fs" / file
    target.parent.mkdir(parents=True)
    target.write_text(content)

    assert oom_kills(tmp_path / "fs", tmp_path / "own") == kills


def test_without_any_cgroup_there_is_no_counter(tmp_path: Path) -> None:
    assert oom_kills(tmp_path / "none", tmp_path / "neither") is None


def test_throttling_and_pressure_are_those_of_the_whole_container(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("0::/front\n")
    (tmp_path / "front").mkdir()
    (tmp_path / "memory.events").write_text(V2)
    (tmp_path / "memory.pressure").write_text(
        "some avg10=0.00 avg60=1.10 avg300=0.22 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n"
    )

    assert throttled(tmp_path, tmp_path / "own") == 12
    assert pressure_seconds(tmp_path, tmp_path / "own") == {"some": 1.5, "full": 0.25}


def test_a_kernel_that_counts_neither_says_nothing(tmp_path: Path) -> None:
    assert throttled(tmp_path, tmp_path / "own") is None
    assert pressure_seconds(tmp_path, tmp_path / "own") == {}

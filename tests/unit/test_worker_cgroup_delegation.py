"""Cgroups of the worker's own: which containers allow them, and what is written where. What the kernel makes of it is
shown on a real one (tests/vm).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cosyvoice_worker import cgroup
from cosyvoice_worker.cgroup.delegation import Leaves, Undelegated, delegate
from cosyvoice_worker.server.confinement import KERNEL_BYTES, Confinement

GIB = 2**30


class Container:
    """The files that a container with a writable cgroup of version 2 sees."""

    def __init__(self, folder: Path) -> None:
        self.mount = folder / "cgroup"
        self.mount.mkdir()
        self.membership = folder / "membership"
        self.membership.write_text("0::/\n")
        for name, content in {
            "cgroup.controllers": "cpu memory",
            "cgroup.procs": "",
            "cgroup.subtree_control": "",
            "memory.high": "max",
            "memory.max": str(8 * GIB),
        }.items():
            (self.mount / name).write_text(f"{content}\n")

    def delegate(self) -> Leaves | Undelegated:
        return delegate(self.mount, self.membership)

    def read(self, path: str) -> str:
        return (self.mount / path).read_text()


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def test_everything_of_the_container_goes_into_the_leaf_of_the_front(container: Container) -> None:
    (container.mount / "cgroup.procs").write_text("1\n")

    assert isinstance(container.delegate(), Leaves)

    assert container.read("front/cgroup.procs") == "1"
    assert container.read("cgroup.subtree_control") == "+memory"


def test_each_engine_gets_a_leaf_and_the_limits_stand_on_it_alone(container: Container) -> None:
    leaves = container.delegate()
    assert isinstance(leaves, Leaves)

    first, second = leaves.engine(high=2 * GIB, limit=4 * GIB), leaves.engine(high=None, limit=None)
    first.add(17)

    assert (first.path.name, second.path.name) == ("engine-1", "engine-2")
    assert (first.path / "cgroup.procs").read_text() == "17"
    assert [(first.path / name).read_text() for name in ("memory.high", "memory.max")] == [str(2 * GIB), str(4 * GIB)]
    assert not (second.path / "memory.high").exists()
    assert (second.path / "memory.max").read_text() == "max"
    assert (container.read("memory.high"), container.read("memory.max")) == ("max\n", f"{8 * GIB}\n")


def spoiled(container: Container, how: str) -> None:
    """Make the container one that is not ours to divide."""
    match how:
        case "cgroup v1":
            (container.mount / "cgroup.controllers").unlink()
        case "the node's namespace":
            container.membership.write_text("0::/kubepods/pod1/c1\n")
        case "no membership":
            container.membership.unlink()
        case "no memory controller":
            (container.mount / "memory.high").unlink()
        case "somebody was here":
            (container.mount / "front").mkdir()
        case "the controller cannot be handed on":
            (container.mount / "cgroup.subtree_control").unlink()
            (container.mount / "cgroup.subtree_control").mkdir()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("cgroup v1", "this node has cgroup v1"),
        ("the node's namespace", "the container has no cgroup namespace of its own with the memory controller"),
        ("no membership", "the container has no cgroup namespace of its own with the memory controller"),
        ("no memory controller", "the container has no cgroup namespace of its own with the memory controller"),
        ("somebody was here", "the container's cgroup is not writable (File exists)"),
        ("the controller cannot be handed on", "the container's cgroup cannot be divided (Is a directory)"),
    ],
)
def test_a_container_that_may_not_be_divided_stays_whole(container: Container, how: str, reason: str) -> None:
    spoiled(container, how)

    assert container.delegate() == Undelegated(reason)


def test_limits_and_use_are_the_container_s_also_for_who_sits_in_a_leaf(container: Container) -> None:
    (container.mount / "engine-1").mkdir()
    (container.mount / "engine-1" / "memory.max").write_text(f"{GIB}\n")
    (container.mount / "memory.current").write_text("5000\n")
    container.membership.write_text("0::/engine-1\n")

    assert cgroup.memory_limit(container.mount, container.membership) == 8 * GIB
    assert cgroup.memory_used(container.mount, container.membership) == 5000


def test_an_only_engine_may_have_all_but_the_reserve_and_a_second_one_its_share(container: Container) -> None:
    confinement = Confinement(2 * GIB, container.delegate(), 8 * GIB)

    first, second = confinement.hold(17, None), confinement.hold(18, GIB)

    assert first is not None
    assert second is not None
    assert (first.leaf.path / "memory.max").read_text() == str(8 * GIB - cgroup.RESERVE_BYTES)
    assert (second.leaf.path / "memory.max").read_text() == str(GIB + KERNEL_BYTES)


def test_only_the_engine_that_serves_is_slowed_down(container: Container) -> None:
    confinement = Confinement(2 * GIB, container.delegate(), 8 * GIB)
    first, second = confinement.hold(17, None), confinement.hold(18, GIB)
    assert first is not None
    assert second is not None
    assert (first.leaf.path / "memory.high").read_text() == str(2 * GIB)
    assert not (second.leaf.path / "memory.high").exists()

    second.bound(None)

    assert (second.leaf.path / "memory.high").read_text() == str(2 * GIB)
    assert (second.leaf.path / "memory.max").read_text() == str(8 * GIB - cgroup.RESERVE_BYTES)


def test_a_value_that_something_has_changed_is_set_again(
    container: Container, caplog: pytest.LogCaptureFixture
) -> None:
    confinement = Confinement(2 * GIB + 1, container.delegate(), 8 * GIB)
    first = confinement.hold(17, None)
    assert first is not None
    high = first.leaf.path / "memory.high"
    high.write_text(f"{2 * GIB}\n")  # as the kernel keeps it

    confinement.keep()
    assert high.read_text() == f"{2 * GIB}\n"
    assert caplog.messages == []

    for changed in ("max\n", f"{GIB}\n"):
        high.write_text(changed)
        confinement.keep()
        assert high.read_text() == str(2 * GIB)
    assert caplog.messages == ["memory.high was changed, and is set again"] * 2


def test_one_that_cannot_be_set_again_is_told_once(container: Container, caplog: pytest.LogCaptureFixture) -> None:
    confinement = Confinement(2 * GIB, container.delegate(), 8 * GIB)
    first = confinement.hold(17, None)
    assert first is not None
    high = first.leaf.path / "memory.high"
    high.unlink()
    high.mkdir()

    confinement.keep()
    confinement.keep()

    assert [message.partition(":")[0] for message in caplog.messages] == [
        "memory.high was changed, and cannot be set again"
    ]


@pytest.mark.parametrize("how", ["no wish", "no engine", "an engine that has ended", "a container that stays whole"])
def test_there_may_be_nothing_to_keep(container: Container, how: str) -> None:
    own = Undelegated("this node has cgroup v1") if how == "a container that stays whole" else container.delegate()
    confinement = Confinement(None if how == "no wish" else GIB, own, None)
    held = None if how == "no engine" else confinement.hold(17, None)
    if held is not None and how == "an engine that has ended":
        for file in held.leaf.path.iterdir():
            file.unlink()
        held.leaf.remove()

    confinement.keep()

    assert container.read("memory.high") == "max\n"
    assert (container.mount / "engine-1").exists() == (how == "no wish")


def test_the_first_engine_is_bounded_while_there_are_two_and_has_all_again_afterwards(container: Container) -> None:
    hold = Confinement(None, container.delegate(), 8 * GIB).hold(17, None)
    assert hold is not None
    (hold.leaf.path / "memory.current").write_text(f"{3 * GIB}\n")
    (hold.leaf.path / "memory.stat").write_text(f"anon {2 * GIB}\nactive_file {GIB}\n")

    hold.bound(GIB)
    assert (hold.leaf.path / "memory.max").read_text() == str(3 * GIB + KERNEL_BYTES)

    hold.bound(None)
    assert (hold.leaf.path / "memory.max").read_text() == str(8 * GIB - cgroup.RESERVE_BYTES)


def test_a_limit_smaller_than_the_reserve_leaves_the_engine_half(container: Container) -> None:
    hold = Confinement(None, container.delegate(), 2**27).hold(17, None)

    assert hold is not None
    assert (hold.leaf.path / "memory.max").read_text() == str(2**26)


def test_an_engine_whose_cgroup_cannot_be_made_runs_without(container: Container) -> None:
    confinement = Confinement(2 * GIB, container.delegate(), None)
    (container.mount / "engine-1").mkdir()

    assert confinement.hold(17, None) is None
    told = confinement.memory_high()
    assert told is not None
    assert told.state == "NotApplied"


def test_without_delegation_engines_stay_where_they_are(tmp_path: Path) -> None:
    confinement = Confinement(None, Undelegated("this node has cgroup v1"), GIB)

    assert confinement.hold(17, None) is None
    assert confinement.memory_high() is None

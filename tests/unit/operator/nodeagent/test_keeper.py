"""One pass of the node agent over a node's files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cosyvoice_operator.nodeagent.keeper import PAGE_BYTES, Change, Keeper
from tests.unit.operator.nodeagent.cgroup_tree import (
    GIB,
    ID,
    UID,
    high_of,
    is_marked,
    make_container,
    make_tree,
    worker,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(tmp_path)


def test_the_value_is_set_once(root: Path) -> None:
    container, keeper = make_container(root), Keeper(root)

    assert keeper.keep([worker()]) == (Change(worker(), GIB),)
    assert (high_of(container), is_marked(container)) == (str(GIB), True)
    assert keeper.keep([worker()]) == ()


def test_a_reset_is_repaired(root: Path) -> None:
    container, keeper = make_container(root), Keeper(root)
    keeper.keep([worker()])
    (container / "memory.high").write_text("max\n")

    assert keeper.keep([worker()]) == (Change(worker(), GIB),)
    assert high_of(container) == str(GIB)


def test_the_next_agent_still_knows_what_to_take_back(root: Path) -> None:
    container = make_container(root)
    Keeper(root).keep([worker()])

    assert Keeper(root).keep([worker(None)]) == (Change(worker(None), None),)
    assert (high_of(container), is_marked(container)) == ("max", False)


def test_a_value_of_somebody_else_s_is_not_taken_back(root: Path) -> None:
    container, keeper = make_container(root), Keeper(root)
    keeper.keep([worker()])
    (container / "memory.high").write_text(f"{2 * GIB}\n")

    assert keeper.keep([worker(None)]) == ()
    assert (high_of(container), is_marked(container)) == (str(2 * GIB), False)


def test_a_worker_with_cgroups_of_its_own_is_left_to_itself(root: Path) -> None:
    container = make_container(root)
    (container / "front").mkdir()

    assert Keeper(root).keep([worker()]) == ()
    assert high_of(container) == "max"


def test_a_container_that_has_no_cgroup_yet_gets_its_value_later(root: Path) -> None:
    keeper = Keeper(root)
    assert keeper.keep([worker()]) == ()

    container = make_container(root)

    assert keeper.keep([worker()]) == (Change(worker(), GIB),)
    assert high_of(container) == str(GIB)


def test_a_container_that_was_made_anew_elsewhere_is_found_again(root: Path) -> None:
    container, keeper = make_container(root), Keeper(root)
    keeper.keep([worker()])
    shutil.rmtree(container.parent)
    again = make_container(root, f"kubepods/pod{UID}/{ID}")

    keeper.keep([worker()])

    assert high_of(again) == str(GIB)


def test_one_that_cannot_be_written_is_told_and_keeps_nobody_else_from_it(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other_uid, other_id = UID[:-1] + "0", "cd" * 32
    broken = make_container(root)
    (broken / "memory.high").unlink()
    (broken / "memory.high").mkdir()
    other = make_container(root, f"kubepods/pod{other_uid}/{other_id}")

    changes = Keeper(root).keep([worker(), worker(uid=other_uid, container_id=other_id)])

    assert [change.container.uid for change in changes] == [other_uid]
    assert high_of(other) == str(GIB)
    assert "memory.high cannot be set: [Errno 21] Is a directory" in caplog.text


def test_whole_pages_are_written(root: Path) -> None:
    container = make_container(root)

    Keeper(root).keep([worker(GIB + PAGE_BYTES - 1)])

    assert high_of(container) == str(GIB)

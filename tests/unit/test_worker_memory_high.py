"""What the worker says of memory.high: what the kernel has, and never the wish."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosyvoice_worker.cgroup.high import NO_VERSION_1, MemoryHigh, is_marked, read_back

GIB = 2**30
WANTED = 6 * GIB
PAGE = 4096


def told(
    tmp_path: Path, said: str | None, *, wanted: int = WANTED, in_leaf: bool = False, marked: bool = False
) -> MemoryHigh:
    """What is told where the kernel's file says `said` (None: there is no file)."""
    (tmp_path / "cgroup.controllers").write_text("memory\n")
    (tmp_path / "own").write_text("0::/front\n" if in_leaf else "0::/\n")
    directory = tmp_path / "engine-1" if in_leaf else tmp_path
    directory.mkdir(exist_ok=True)
    if said is not None:
        (directory / "memory.high").write_text(f"{said}\n")
    leaf = directory if in_leaf else None
    return read_back(
        wanted,
        leaf,
        "the container's cgroup is not writable (Read-only file system)",
        mount=tmp_path,
        membership=tmp_path / "own",
        page=PAGE,
        marked=lambda _: marked,
    )


@pytest.mark.parametrize(
    ("in_leaf", "marked", "route"),
    [(True, False, "Delegated"), (False, True, "NodeAgent"), (False, False, "Other")],
)
def test_what_the_kernel_has_as_wanted_is_applied_by_whoever_did_it(
    tmp_path: Path, in_leaf: bool, marked: bool, route: str
) -> None:
    read = told(tmp_path, str(WANTED), in_leaf=in_leaf, marked=marked)

    assert (read.state, read.applied, read.route, read.reason) == ("Applied", WANTED, route, None)


def test_the_kernel_rounds_down_to_pages(tmp_path: Path) -> None:
    read = told(tmp_path, str(WANTED), wanted=WANTED + 1)

    assert (read.state, read.applied) == ("Applied", WANTED)


def test_max_is_not_applied_and_says_why_nobody_did_it(tmp_path: Path) -> None:
    read = told(tmp_path, "max")

    assert (read.state, read.applied, read.route) == ("NotApplied", None, None)
    assert read.reason is not None
    assert "Read-only file system" in read.reason


def test_another_value_is_not_applied_and_both_are_told(tmp_path: Path) -> None:
    read = told(tmp_path, str(GIB))

    assert (read.state, read.applied) == ("NotApplied", GIB)
    assert read.reason == (
        f"memory.high is {GIB} bytes where {WANTED} are wanted: something else on the node has set it"
    )


def test_a_kernel_that_shows_nothing_is_unknown(tmp_path: Path) -> None:
    assert told(tmp_path, None).state == "Unknown"


def test_on_cgroup_version_1_it_is_unknown_and_says_so(tmp_path: Path) -> None:
    read = read_back(WANTED, None, "this node has cgroup v1", mount=tmp_path, membership=tmp_path / "own")

    assert (read.state, read.applied, read.reason) == ("Unknown", None, NO_VERSION_1)


def test_a_directory_that_nobody_marked_is_not_the_agent_s(tmp_path: Path) -> None:
    assert not is_marked(tmp_path)
    assert not is_marked(tmp_path / "absent")


def test_the_document_has_the_fields_of_the_contract() -> None:
    assert MemoryHigh(wanted=1, state="Unknown").document() == {
        "wanted": 1,
        "state": "Unknown",
        "applied": None,
        "route": None,
        "reason": None,
    }

"""The reader at the shell, without a cluster: what he types, and what he is told when it does not work."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.docs.output import stable
from tests.docs.reader import Reader, StuckError, clone
from tests.docs.record import rows


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path, dict(os.environ), {"NAME": "narrator"})


def test_placeholders_are_replaced_and_the_output_comes_back(reader: Reader) -> None:
    assert reader.type("echo NAME | tr a-z A-Z") == "NARRATOR\n"


def test_the_first_line_that_fails_ends_the_script_and_the_error_has_all_of_it(reader: Reader) -> None:
    with pytest.raises(StuckError) as stuck:
        reader.type("echo begun\nfalse | cat\necho never")

    assert str(stuck.value) == "echo begun\nfalse | cat\necho never\n\nended with 1:\nbegun\n"


def test_a_variable_that_no_page_has_set_is_an_error(reader: Reader) -> None:
    with pytest.raises(StuckError, match="KEY: unbound variable"):
        reader.type('echo "$KEY"')


def test_what_takes_too_long_is_ended_with_all_that_it_has_started(reader: Reader) -> None:
    with pytest.raises(StuckError, match=r"did not end within 1 s:\nbegun"):
        reader.type("echo begun\nsleep 4713 &\nsleep 4713", timeout=1)

    assert b"sleep\x004713\x00" not in [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]


@pytest.mark.parametrize(("last", "code"), [("b v1 v2 Ready 3s", 0), ("b v1 v2 Failed 3s", 1)])
def test_a_watch_ends_at_the_line_that_is_waited_for(tmp_path: Path, last: str, code: int) -> None:
    watch = tmp_path / "kubectl"
    ending = "sleep 4714" if code == 0 else ""  # as long as it is not ended, or by itself without that line
    watch.write_text(f"#!/bin/sh\necho a\necho 'b v1 v2 Ready 9s'\nexec {ending or 'true'}\n")
    watch.chmod(0o755)
    reader = Reader(tmp_path, {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})

    script = f"{sys.executable} -m tests.docs.watching {watch} get cvm -w || echo ended with $?"
    came = reader.type(script, until=last)

    assert [stable(line) for line in came.splitlines()[:2]] == ["a", "b v1 v2 Ready AGE"]
    assert ("ended with 1" in came) == (code == 1)


def test_the_clone_has_the_tree_as_it_is_and_nothing_that_git_ignores(tmp_path: Path) -> None:
    folder = clone(tmp_path)

    assert (folder / "README.md").read_text() == (Path(__file__).parents[2] / "README.md").read_text()
    assert (folder / ".venv" / "bin").is_dir()
    assert not list(folder.rglob("__pycache__/*.pyc"))


def test_of_a_watched_table_version_target_and_status_are_compared() -> None:
    table = "NAME   VERSION   TARGET   READY   STATUS   AGE\nnarrator   v1.2.0    v1.3.0   2/2     Loading   28s\n…\n"

    assert rows(table) == [("v1.2.0", "v1.3.0", "Loading")]

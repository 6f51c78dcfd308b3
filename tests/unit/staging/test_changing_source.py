"""Somebody changes the source between the look at it and the copy: nothing from outside of it is copied."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cosyvoice_worker.outcome import Phase, Reason, WorkerError
from cosyvoice_worker.settings import parse_settings
from cosyvoice_worker.staging.stage import stage
from cosyvoice_worker.staging.task import Task
from tests.unit.staging.conftest import model_json

Change = Callable[[Path], object]


def linked_to(target: str) -> Change:
    return lambda path: (path.unlink(), path.symlink_to(target))


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def moved_out(path: Path) -> None:
    """The folder of the model is a link out of the claim now, to one with the same names."""
    outside = path.parents[2] / "outside"
    path.parent.rename(outside)
    path.parent.symlink_to(outside)


def growing(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(1 << 20))


CHANGES: dict[str, tuple[Change, str]] = {
    "a link out": (linked_to("/etc/passwd"), "Too many levels of symbolic links"),
    "a device": (linked_to("/dev/zero"), "Too many levels of symbolic links"),
    "a pipe": (piped, "changed while it was copied"),
    "a folder that leads out": (moved_out, "changed while it was copied"),
    "a longer file": (growing, "changed while it was copied"),
    "no file": (Path.unlink, "No such file or directory"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_source_that_changes_is_told_as_such_and_nothing_is_kept(name: str, model: Path, root: Path) -> None:
    change, words = CHANGES[name]
    told: list[str] = []

    def tell(doing: str, _file: str | None) -> None:
        if doing.startswith("copying llm.pt") and not told:
            told.append(doing)
            change(model / "llm.pt")

    raw = json.dumps(model_json(model)).encode()
    task = Task(settings=parse_settings(raw, Phase.STAGE), document=raw, boundary=model.parent)
    with pytest.raises(WorkerError) as raised:
        stage(task, root, tell)

    outcome = raised.value.outcome
    assert told
    assert (outcome.reason, outcome.file, outcome.retryable) == (Reason.SOURCE_UNREACHABLE, "llm.pt", True)
    assert words in outcome.message
    assert {path.name for path in root.iterdir()} <= {".lock"}


def test_no_more_is_read_of_a_file_that_grows_than_tells_so(model: Path, root: Path) -> None:
    copied: list[int] = []

    def tell(doing: str, _file: str | None) -> None:
        if doing.startswith("copying llm.pt"):
            copied.append(int(doing.partition("(")[2].split()[0]))
            if len(copied) == 1:
                growing(model / "llm.pt")

    size = (model / "llm.pt").stat().st_size
    raw = json.dumps(model_json(model)).encode()
    task = Task(settings=parse_settings(raw, Phase.STAGE), document=raw, boundary=model.parent)
    with pytest.raises(WorkerError):
        stage(task, root, tell)

    assert copied[-1] - copied[0] == size + 1

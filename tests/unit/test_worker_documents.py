"""Which of the documents in a pod a starting container goes by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cosyvoice_worker import documents

OLD, NEW = "aaaaaaaaaa", "bbbbbbbbbb"


def write(path: Path, revision: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": 1, "revision": revision, "source": {"uri": '"revision":"cccccccccc"'}}))
    return str(path)


def stage(root: Path, *revisions: str) -> None:
    """As the stager leaves it; the first one is what the pod started with."""
    for revision in revisions:
        write(Path(documents.staged(str(root), revision)), revision)
        write(Path(documents.pointer(str(root), revision)), revision)
    write(root / "staged.json", revisions[0])


@pytest.fixture
def config(tmp_path: Path) -> str:
    """The model.json that the pod was made with."""
    return write(tmp_path / "config" / "model.json", OLD)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "tmpfs"


def test_a_container_starts_with_what_the_pod_was_made_with(config: str, root: Path) -> None:
    stage(root, OLD)

    assert documents.current(config) == config
    assert documents.to_serve(config, str(root)) == config


def test_another_current_document_goes_first_once_it_is_staged(config: str, root: Path) -> None:
    current = write(Path(config).with_name("current.json"), NEW)
    stage(root, OLD, NEW)

    assert documents.current(config) == current
    assert documents.to_serve(config, str(root)) == documents.staged(str(root), NEW)


def test_a_current_document_that_is_not_staged_waits_for_its_order(config: str, root: Path) -> None:
    write(Path(config).with_name("current.json"), NEW)
    stage(root, OLD)

    assert documents.to_serve(config, str(root)) == documents.staged(str(root), OLD)


def test_a_candidate_is_never_started_with(config: str, root: Path) -> None:
    write(Path(config).with_name("candidate.json"), NEW)
    stage(root, OLD, NEW)

    assert documents.current(config) == config
    assert documents.to_serve(config, str(root)) == config


def test_where_nothing_is_staged_the_current_document_is_told_of(config: str, root: Path) -> None:
    current = write(Path(config).with_name("current.json"), NEW)

    assert documents.to_serve(config, str(root)) == current


def test_a_document_is_found_by_its_revision(config: str) -> None:
    candidate = write(Path(config).with_name("candidate.json"), NEW)

    assert documents.of_revision(config, OLD) == config
    assert documents.of_revision(config, NEW) == candidate
    assert documents.of_revision(config, "cccccccccc") is None


@pytest.mark.parametrize("indent", [None, 2])
def test_the_revision_is_read_without_a_parser(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"model": '"revision":"x"', "revision": OLD}, indent=indent))

    assert documents.revision_in(str(path)) == OLD


@pytest.mark.parametrize("name", ["", "../aaaaaaaaaa", "a/b", "a.b", "A", "a" * 64, "a\\n", "á"])
def test_what_cannot_be_a_revision_names_no_file(name: str, config: str, root: Path) -> None:
    current = Path(config).with_name("current.json")
    current.write_text(f'{{"revision": "{name}"}}')
    for path in (documents.pointer(str(root), name), documents.staged(str(root), name)):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()

    assert documents.revision_in(str(current)) is None
    assert documents.to_serve(config, str(root)) == str(current)


@pytest.mark.parametrize("text", ["", "{}", '{"version": "v1"}'])
def test_a_document_without_a_revision_has_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)

    assert documents.revision_in(str(path)) is None
    assert documents.revision_in(str(tmp_path / "absent")) is None

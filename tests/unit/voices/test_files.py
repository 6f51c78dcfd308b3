"""Pack files: one step to write, nothing that blocks or overflows to read."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from cosyvoice_worker.voices import files
from cosyvoice_worker.voices.errors import VoiceError
from cosyvoice_worker.voices.limits import MAX_PACK_BYTES
from cosyvoice_worker.voices.pack import Pack


def test_a_written_pack_is_read(ann: Pack, tmp_path: Path) -> None:
    files.write(ann, tmp_path / "ann.safetensors")

    assert files.read(tmp_path / "ann.safetensors") == ann
    assert (tmp_path / "ann.safetensors").stat().st_mode & 0o777 == 0o644


def test_writing_replaces_the_file_and_leaves_the_old_one_to_its_readers(ann: Pack, tmp_path: Path) -> None:
    path = tmp_path / "ann.safetensors"
    files.write(ann, path)
    with path.open("rb") as reader:
        files.write(replace(ann, prompt_text="Other."), path)

        assert b"Hello." in reader.read()
    assert files.read(path).prompt_text == "Other."
    assert [entry.name for entry in tmp_path.iterdir()] == ["ann.safetensors"]


def test_a_pack_that_is_refused_leaves_nothing_behind(ann: Pack, tmp_path: Path) -> None:
    with pytest.raises(VoiceError):
        files.write(replace(ann, family="other"), tmp_path / "ann.safetensors")

    assert list(tmp_path.iterdir()) == []


def test_the_largest_file_allowed_is_read_and_a_larger_one_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "ann.safetensors"
    path.write_bytes(bytes(MAX_PACK_BYTES))
    with pytest.raises(VoiceError, match="header: expected JSON"):
        files.read(path)

    os.truncate(path, MAX_PACK_BYTES + 1)
    with pytest.raises(VoiceError) as refused:
        files.read(path)

    limit = f"at most {MAX_PACK_BYTES} bytes, got {MAX_PACK_BYTES + 1}"
    assert str(refused.value) == f"{path}: too large for a voice pack: expected {limit}"


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    for path, what in (
        (pipe, "cannot be read (not a regular file)"),
        (tmp_path, "cannot be read (Is a directory)"),
        (tmp_path / "none", "cannot be read (No such file or directory)"),
    ):
        with pytest.raises(VoiceError) as refused:
            files.read(path)

        assert str(refused.value) == f"{path}: {what}"


def test_a_directory_that_is_not_there_is_named(ann: Pack, tmp_path: Path) -> None:
    path = tmp_path / "none" / "ann.safetensors"

    with pytest.raises(VoiceError) as refused:
        files.write(ann, path)

    assert str(refused.value) == f"{path}: cannot be written (No such file or directory)"

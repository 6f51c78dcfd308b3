"""Damage that shows before a file is copied."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from cosyvoice_worker.outcome import Outcome, Reason, WorkerError
from cosyvoice_worker.staging.inspection import inspect
from cosyvoice_worker.staging.selection import SourceFile, select

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 2023316821\n"
)


def source_file(path: Path) -> SourceFile:
    status = path.stat()
    return SourceFile(path=path.name, real=path, size=status.st_size, modified_ns=status.st_mtime_ns)


def outcome_of(path: Path) -> Outcome:
    with pytest.raises(WorkerError) as raised:
        inspect(source_file(path))
    return raised.value.outcome


def test_whole_files_pass(model):
    for file in select(model, model):
        inspect(file)


def test_an_empty_file_is_truncated(model):
    (model / "cosyvoice2.yaml").write_bytes(b"")

    outcome = outcome_of(model / "cosyvoice2.yaml")

    assert (outcome.reason, outcome.message) == (Reason.TRUNCATED_FILE, "cosyvoice2.yaml is empty")
    assert (outcome.expected, outcome.actual) == ("more than 0 bytes", "0 bytes")


@pytest.mark.parametrize("name", ["llm.pt", "cosyvoice2.yaml", "voices/anna.safetensors"])
def test_a_git_lfs_pointer_is_named_with_the_size_of_the_real_file(model, name):
    (model / name).write_text(POINTER)

    outcome = outcome_of(model / name)

    assert outcome.reason is Reason.LFS_POINTER
    assert outcome.message == (
        f"{Path(name).name} is a git-lfs pointer, not the file: run `git lfs pull` in the clone and copy the directory "
        "again"
    )
    assert (outcome.expected, outcome.actual) == ("2023316821 bytes", "a pointer of 135 bytes")


@pytest.mark.parametrize("kept", [0.01, 0.5, 0.99])
def test_a_cut_checkpoint_has_lost_its_zip_directory(model, kept):
    content = (model / "llm.pt").read_bytes()
    (model / "llm.pt").write_bytes(content[: int(len(content) * kept)])

    outcome = outcome_of(model / "llm.pt")

    assert outcome.reason is Reason.TRUNCATED_FILE
    assert outcome.message == "llm.pt ends before its zip directory: the file is cut off, copy it again"
    assert outcome.actual == f"{int(len(content) * kept)} bytes without one"


@pytest.mark.parametrize("cut", [slice(100, 20000), slice(0, 0), slice(29000, 29100)])
def test_a_checkpoint_that_lost_or_gained_bytes_in_its_middle_does_not_fit_its_zip_directory(model, cut):
    content = (model / "llm.pt").read_bytes()
    filling = b"" if cut.stop else b"gained"
    (model / "llm.pt").write_bytes(content[: cut.start] + filling + content[cut.stop :])

    outcome = outcome_of(model / "llm.pt")

    assert outcome.reason is Reason.CORRUPT_FILE
    assert outcome.message in {
        "llm.pt has lost or gained bytes in its middle: copy it again",
        "llm.pt is no torch checkpoint",
    }


def test_a_checkpoint_whose_records_are_compressed_could_unpack_to_any_size_and_is_refused(model):
    with zipfile.ZipFile(model / "llm.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10_000_000))

    outcome = outcome_of(model / "llm.pt")

    assert (outcome.reason, outcome.actual) == (Reason.CORRUPT_FILE, "1 compressed of 1")


def test_a_record_that_claims_more_bytes_than_it_has_is_told_as_damage(model):
    content = bytearray((model / "llm.pt").read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (2**31).to_bytes(4, "little")
    (model / "llm.pt").write_bytes(content)

    outcome = outcome_of(model / "llm.pt")

    assert (outcome.reason, outcome.actual) == (Reason.CORRUPT_FILE, "two for 1 of 2")


def test_a_zip_directory_with_a_name_that_is_no_text_is_told_as_damage(model):
    with zipfile.ZipFile(model / "llm.pt", "w") as archive:
        archive.writestr("archive/\u00e9.pkl", b"x")
    content = (model / "llm.pt").read_bytes()
    (model / "llm.pt").write_bytes(content.replace("\u00e9".encode(), b"\xe9\xe9"))

    outcome = outcome_of(model / "llm.pt")

    assert (outcome.reason, outcome.message) == (
        Reason.CORRUPT_FILE,
        "llm.pt has a zip directory that cannot be read: copy it again",
    )


def test_a_pack_whose_header_is_nested_without_end_is_told_as_damage(model):
    header = b'{"a":' + b"[" * 200_000
    (model / "voices" / "anna.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)

    assert outcome_of(model / "voices" / "anna.safetensors").reason is Reason.CORRUPT_FILE


def test_a_file_of_another_kind_is_no_checkpoint(model):
    (model / "llm.pt").write_bytes(b"<!DOCTYPE html><title>404</title>")

    outcome = outcome_of(model / "llm.pt")

    assert (outcome.reason, outcome.message) == (Reason.CORRUPT_FILE, "llm.pt is no torch checkpoint")
    assert outcome.actual == "bytes 3c21444f43545950"


def test_a_checkpoint_in_the_format_before_zip_is_left_to_the_loader(model):
    (model / "llm.pt").write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")

    inspect(source_file(model / "llm.pt"))


@pytest.mark.parametrize("missing", [1, 49, 60])
def test_a_cut_voice_pack_says_how_long_it_should_be(model, missing):
    path = model / "voices" / "anna.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-missing])

    outcome = outcome_of(path)

    assert (outcome.reason, outcome.message) == (Reason.TRUNCATED_FILE, "anna.safetensors is cut off, copy it again")
    assert outcome.actual == f"{len(content) - missing} bytes"


@pytest.mark.parametrize("content", [b"RIFF....WAVEfmt ", b"\x05\0\0\0\0\0\0\0{]}]{"])
def test_a_file_of_another_kind_is_no_voice_pack(model, content):
    path = model / "voices" / "anna.safetensors"
    path.write_bytes(content)

    assert outcome_of(path).reason is Reason.CORRUPT_FILE

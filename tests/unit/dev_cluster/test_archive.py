"""Docker archives of a single binary."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from dev.cluster import archive
from dev.cluster.errors import ArchiveError


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF")
    return path


def test_what_is_written_is_what_is_read(tmp_path: Path, binary: Path) -> None:
    target = tmp_path / "image.tar"

    image_id = archive.write(target, "localhost/program:1", binary)

    assert archive.inspect(target) == ("localhost/program:1", image_id)


def test_the_same_binary_gives_the_same_image(tmp_path: Path, binary: Path) -> None:
    first, second = tmp_path / "1.tar", tmp_path / "2.tar"

    assert archive.write(first, "a:1", binary) == archive.write(second, "a:1", binary)
    assert first.read_bytes() == second.read_bytes()


def test_another_binary_gives_another_image(tmp_path: Path, binary: Path) -> None:
    before = archive.write(tmp_path / "1.tar", "a:1", binary)
    binary.write_bytes(b"other")

    assert archive.write(tmp_path / "1.tar", "a:1", binary) != before


def test_the_image_starts_the_binary_as_somebody_without_rights(tmp_path: Path, binary: Path) -> None:
    target = tmp_path / "image.tar"
    image_id = archive.write(target, "a:1", binary, "arm64")

    with tarfile.open(target) as tar:
        member = tar.extractfile(f"{image_id.removeprefix('sha256:')}.json")
        assert member is not None
        configuration = json.load(member)

    assert configuration["config"]["Entrypoint"] == ["/program"]
    assert configuration["config"]["User"] == "65532:65532"
    assert configuration["architecture"] == "arm64"


def test_a_file_that_is_no_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no tar")

    with pytest.raises(ArchiveError, match=r"notes\.txt: not a docker-archive"):
        archive.inspect(path)


def test_an_archive_without_a_manifest_is_named(tmp_path: Path) -> None:
    path = tmp_path / "other.tar"
    with tarfile.open(path, "w"):
        pass

    with pytest.raises(ArchiveError, match=r"other\.tar: not a docker-archive"):
        archive.inspect(path)

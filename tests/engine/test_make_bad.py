"""Bad directories on purpose: each differs from the good one in exactly its fault, and the good one stays as it is."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cosyvoice_worker.faults.kit import FAULTS, make_bad
from cosyvoice_worker.outcome import EXIT_CODES, Reason, WorkerError
from cosyvoice_worker.staging.selection import select


def contents(directory: Path) -> dict[str, str]:
    """The sha256 of every file; a sparse file of a tebibyte is told by its size alone."""
    found = {}
    for path in (path for path in directory.rglob("*") if path.is_file()):
        size = path.stat().st_size
        told = hashlib.sha256(path.read_bytes()).hexdigest() if size < 2**32 else f"{size} bytes"
        found[str(path.relative_to(directory))] = told
    return found


@pytest.fixture(scope="module")
def good(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory of this module's own: hard links to it are what is tested."""
    return Path(shutil.copytree(tiny_model_dir, tmp_path_factory.mktemp("good") / "model"))


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_directory_differs_in_its_fault_alone_and_the_good_one_is_untouched(
    good: Path, tmp_path: Path, name: str
) -> None:
    before = contents(good)

    damage = make_bad(FAULTS[name], good, tmp_path / "bad")

    assert contents(good) == before
    staged = {file.path: before[file.path] for file in select(good, good)}
    bad = contents(tmp_path / "bad")
    changed = {path for path in staged.keys() | bad.keys() if staged.get(path) != bad.get(path)}
    if name == "source-gone":
        assert bad == {}
        return
    assert damage.file in changed
    assert changed - {damage.file} <= {
        "unknown-version": {"cosyvoice2.yaml"},
        "silent-audio": {"voices/rehearsal.safetensors"},
        "hang-in-warm-up": {"cosyvoice2.yaml", "CosyVoice-BlankEN/config.json"},
    }.get(name, set())
    assert os.listdir(tmp_path) == ["bad"]  # noqa: PTH208 - the names are what is asked for


def test_every_fault_says_how_a_worker_ends_on_it() -> None:
    assert {name for name, fault in FAULTS.items() if EXIT_CODES[fault.reason] == 0} == set()
    assert all(fault.name == name and fault.summary for name, fault in FAULTS.items())


def test_links_into_a_hub_cache_are_followed(good: Path, tmp_path: Path) -> None:
    blobs = Path(shutil.copytree(good, tmp_path / "blobs"))
    snapshot = Path(shutil.copytree(good, tmp_path / "snapshot"))
    (snapshot / "llm.pt").unlink()
    (snapshot / "llm.pt").symlink_to(Path("..") / "blobs" / "llm.pt")

    make_bad(FAULTS["missing-file"], snapshot, tmp_path / "bad")

    assert not (tmp_path / "bad" / "llm.pt").is_symlink()
    assert (tmp_path / "bad" / "llm.pt").read_bytes() == (blobs / "llm.pt").read_bytes()


def test_what_is_there_already_is_left_alone(good: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()

    with pytest.raises(WorkerError, match=f"{bad} is there already: name a directory that is not") as refused:
        make_bad(FAULTS["missing-file"], good, bad)

    assert refused.value.outcome.reason is Reason.INVALID_CONFIG
    assert list(bad.iterdir()) == []


def test_nothing_is_written_into_the_good_directory(good: Path) -> None:
    with pytest.raises(WorkerError, match="lies in the good directory") as refused:
        make_bad(FAULTS["missing-file"], good, good / "bad")

    assert refused.value.outcome.reason is Reason.INVALID_CONFIG


def test_a_directory_that_is_not_good_is_refused_and_leaves_nothing(good: Path, tmp_path: Path) -> None:
    make_bad(FAULTS["missing-tensor"], good, tmp_path / "bad")

    with pytest.raises(WorkerError, match=r"flow\.pt lacks the tensor encoder\.after_norm\.weight") as refused:
        make_bad(FAULTS["missing-tensor"], tmp_path / "bad", tmp_path / "worse")

    assert refused.value.outcome.reason is Reason.MISSING_TENSOR
    assert not (tmp_path / "worse").exists()
    assert not (tmp_path / "worse.partial").exists()


def test_an_incomplete_directory_is_refused(good: Path, tmp_path: Path) -> None:
    make_bad(FAULTS["missing-file"], good, tmp_path / "bad")

    with pytest.raises(WorkerError, match=r"hift\.pt missing in") as refused:
        make_bad(FAULTS["nan-weight"], tmp_path / "bad", tmp_path / "worse")

    assert refused.value.outcome.reason is Reason.MISSING_FILE


def test_a_place_that_cannot_be_written_is_told(good: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(WorkerError, match=r"cannot be made: .*: Not a directory") as refused:
        make_bad(FAULTS["missing-file"], good, tmp_path / "file" / "bad")

    assert refused.value.outcome.reason is Reason.ACCESS_DENIED


def test_the_command_tells_what_it_did_and_what_to_expect(good: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    done = make_bad_command("missing-tensor", good, bad)

    assert done.returncode == 0
    assert done.stdout == (
        f"{bad}: flow.pt, tensor encoder.after_norm.weight: removed\n"
        "expect: MissingTensor in phase Build, exit code 66, not retried\n"
    )
    assert bad.is_dir()


def test_the_command_tells_what_else_a_fault_needs(good: Path, tmp_path: Path) -> None:
    done = make_bad_command("flipped-bit", good, tmp_path / "bad")

    assert done.stdout.splitlines()[2].startswith("needs: spec.source.digest sha256:")


def test_the_command_lists_its_faults_and_refuses_others(good: Path, tmp_path: Path) -> None:
    done = make_bad_command("burnt-disk", good, tmp_path / "bad")

    assert done.returncode == 2
    assert all(name in done.stderr for name in FAULTS)


def make_bad_command(fault: str, good: Path, bad: Path) -> subprocess.CompletedProcess[str]:
    words = ["make-bad", fault, "--model", str(good), "--out", str(bad)]
    return subprocess.run(
        [sys.executable, "-m", "cosyvoice_worker", *words], capture_output=True, text=True, check=False, timeout=120
    )

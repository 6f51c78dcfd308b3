"""Staging from end to end, in this process."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError
from cosyvoice_worker.settings import parse_settings
from cosyvoice_worker.staging import locks
from cosyvoice_worker.staging.manifest import Manifest
from cosyvoice_worker.staging.pointer import Staged, read_pointer
from cosyvoice_worker.staging.stage import stage
from cosyvoice_worker.staging.task import Task
from tests.unit.staging.conftest import REVISION, model_json

GIB = 2**30


def run(model: Path, root: Path, *, digest: str | None = None, verify: str = "Once", limit: int = GIB) -> Staged:
    document = model_json(model)
    document["source"]["digest"] = digest
    document["staging"] = {"sizeLimitBytes": limit, "verify": verify}
    raw = json.dumps(document).encode()
    task = Task(settings=parse_settings(raw, Phase.STAGE), document=raw, boundary=model.parent)
    return stage(task, root)


def failure(model: Path, root: Path, **options: object) -> Outcome:
    with pytest.raises(WorkerError) as raised:
        run(model, root, **options)
    return raised.value.outcome


def names(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


def test_a_version_is_copied_under_its_digest_with_the_manifest_that_proves_it(model, root):
    staged = run(model, root)

    version = root / staged.directory
    manifest = Manifest.parse((version / ".manifest").read_text())
    assert manifest.digest == staged.digest == "sha256:" + staged.directory
    assert (staged.files, staged.bytes) == (9, manifest.bytes)
    for entry in manifest.entries:
        assert (version / entry.path).read_bytes() == (model / entry.path).read_bytes()
    assert names(root) == {staged.directory, "staged.json", "revisions", ".lock"}
    assert read_pointer(root, Phase.MAP, REVISION) == staged


def test_staged_files_cannot_be_written_by_those_who_map_them(model, root):
    version = root / run(model, root).directory

    assert {path.stat().st_mode & 0o777 for path in version.rglob("*.pt")} == {0o444}


def test_a_second_run_copies_nothing(model, root):
    first = run(model, root)
    inode = (root / first.directory / "llm.pt").stat().st_ino

    second = run(model, root)

    assert second.digest == first.digest
    assert (root / first.directory / "llm.pt").stat().st_ino == inode


def test_with_a_digest_a_staged_version_is_used_although_the_source_is_gone(model, root):
    staged = run(model, root)
    shutil.rmtree(model)

    assert run(model, root, digest=staged.digest).digest == staged.digest


def test_without_a_digest_a_source_that_changed_is_staged_anew_and_the_old_version_removed(model, root):
    old = run(model, root)
    (model / "cosyvoice2.yaml").write_text("another")

    new = run(model, root)

    assert new.digest != old.digest
    assert names(root) == {new.directory, "staged.json", "revisions", ".lock"}


def test_a_source_that_was_only_touched_keeps_its_digest(model, root):
    old = run(model, root)
    os.utime(model / "llm.pt", ns=(1, 1))

    assert run(model, root).digest == old.digest


def test_files_outside_of_the_allow_list_do_not_count(model, root):
    old = run(model, root)
    (model / "README.md").write_text("changed")
    (model / "optimizer.pt").write_bytes(b"new")

    assert run(model, root).digest == old.digest


def test_another_digest_than_the_given_one_is_told_with_both(model, root):
    actual = run(model, root).digest
    wanted = "sha256:" + "0" * 64

    outcome = failure(model, root, digest=wanted)

    assert (outcome.reason, outcome.exit_code, outcome.retryable) == (Reason.DIGEST_MISMATCH, 65, False)
    assert (outcome.expected, outcome.actual) == (wanted, actual)
    assert outcome.message == (
        "the files at pvc://voices/CosyVoice2-0.5B are not those of spec.source.digest: restore them, or set the "
        f"digest to {actual} if they are meant"
    )
    assert "incoming.partial" not in names(root)


def test_a_damaged_file_stops_before_anything_is_written(model, root):
    (model / "llm.pt").write_bytes((model / "llm.pt").read_bytes()[:1000])

    outcome = failure(model, root)

    assert outcome.reason is Reason.TRUNCATED_FILE
    assert names(root) == {".lock"}


@pytest.mark.parametrize("left", ["incoming.partial", "0" * 64])
def test_what_a_killed_stager_left_behind_is_cleared(model, root, left):
    (root / left).mkdir(parents=True)
    (root / left / "llm.pt").write_bytes(b"half")

    staged = run(model, root)

    assert names(root) == {staged.directory, "staged.json", "revisions", ".lock"}


def test_a_version_without_its_marker_is_not_trusted(model, root):
    staged = run(model, root)
    (root / staged.directory / ".manifest").unlink()
    (root / staged.directory / "llm.pt").unlink()

    again = run(model, root, digest=staged.digest)

    assert (root / again.directory / "llm.pt").read_bytes() == (model / "llm.pt").read_bytes()


def test_a_version_whose_file_lost_its_end_is_staged_again(model, root):
    staged = run(model, root)
    os.truncate(root / staged.directory / "llm.pt", 10)

    run(model, root, digest=staged.digest)

    assert (root / staged.directory / "llm.pt").read_bytes() == (model / "llm.pt").read_bytes()


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)


def test_verify_always_finds_a_flipped_bit_and_stages_again(model, root):
    staged = run(model, root)
    flip_a_bit(root / staged.directory / "llm.pt")

    run(model, root, digest=staged.digest, verify="Always")

    assert (root / staged.directory / "llm.pt").read_bytes() == (model / "llm.pt").read_bytes()


def test_verify_always_does_not_replace_what_a_process_maps(model, root):
    staged = run(model, root)
    flip_a_bit(root / staged.directory / "llm.pt")
    lock = locks.shared(root / staged.directory)
    try:
        outcome = failure(model, root, digest=staged.digest, verify="Always")
    finally:
        os.close(lock)

    assert outcome.reason is Reason.CORRUPT_FILE
    assert outcome.message == (
        f"the staged llm.pt is damaged and in use: end the processes that map {root / staged.directory}"
    )


def test_a_cut_version_that_a_process_maps_is_said_to_be_so(model, root):
    staged = run(model, root)
    version = root / staged.directory
    (version / "llm.pt").chmod(0o644)
    os.truncate(version / "llm.pt", 10)
    lock = locks.shared(version)
    try:
        outcome = failure(model, root)
    finally:
        os.close(lock)

    assert outcome.reason is Reason.CORRUPT_FILE
    assert outcome.message == f"the staged version is damaged and in use: end the processes that map {version}"


def test_a_version_in_use_survives_the_staging_of_another(model, root):
    old = run(model, root)
    lock = locks.shared(root / old.directory)
    try:
        (model / "cosyvoice2.yaml").write_text("another")
        new = run(model, root)
    finally:
        os.close(lock)

    assert names(root) == {old.directory, new.directory, "staged.json", "revisions", ".lock"}
    assert read_pointer(root, Phase.MAP, REVISION).digest == new.digest


def test_the_same_content_staged_again_while_in_use_stays_where_it_is(model, root):
    old = run(model, root)
    lock = locks.shared(root / old.directory)
    try:
        os.utime(model / "llm.pt", ns=(1, 1))
        new = run(model, root)
    finally:
        os.close(lock)

    assert new.digest == old.digest
    assert names(root) == {old.directory, "staged.json", "revisions", ".lock"}


def test_too_small_a_size_limit_is_told_with_the_arithmetic(model, root):
    outcome = failure(model, root, limit=100_000)

    assert (outcome.reason, outcome.exit_code, outcome.retryable) == (Reason.OUT_OF_SPACE, 71, True)
    assert outcome.message == ("the files need 0.4 MiB, spec.staging.sizeLimit is 0.1 MiB: set it to at least 1Mi")
    assert names(root) == {".lock"}


def test_a_root_that_cannot_be_made_is_told(model, root):
    root.write_text("a file")

    outcome = failure(model, root)

    assert outcome.reason is Reason.ACCESS_DENIED
    assert outcome.message == f"{root} cannot be written to the tmpfs: File exists"


def test_nothing_staged_is_told_to_the_worker(root):
    with pytest.raises(WorkerError, match=r"no staged weights: .*3f9a1c0b7d\.json cannot be read"):
        read_pointer(root, Phase.MAP, REVISION)


def test_a_pointer_that_is_nested_without_end_is_told_as_one_that_cannot_be_read(root):
    (root / "revisions").mkdir(parents=True)
    (root / "revisions" / f"{REVISION}.json").write_bytes(b'{"x":' + b"[" * 100_000)

    with pytest.raises(WorkerError, match=r"cannot be read \(maximum recursion depth exceeded"):
        read_pointer(root, Phase.MAP, REVISION)

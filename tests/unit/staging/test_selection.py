"""Which files are staged, and where symbolic links may lead."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from cosyvoice_worker.outcome import Reason, WorkerError
from cosyvoice_worker.staging.selection import select


def reason_and_message(model: Path, boundary: Path | None = None) -> tuple[Reason, str, str | None]:
    with pytest.raises(WorkerError) as raised:
        select(model, boundary or model)
    return raised.value.outcome.reason, raised.value.outcome.message, raised.value.outcome.file


def test_files_of_the_allow_list_are_selected_sorted_by_path(model):
    assert [file.path for file in select(model, model)] == [
        "CosyVoice-BlankEN/config.json",
        "CosyVoice-BlankEN/merges.txt",
        "CosyVoice-BlankEN/tokenizer_config.json",
        "CosyVoice-BlankEN/vocab.json",
        "cosyvoice2.yaml",
        "flow.pt",
        "hift.pt",
        "llm.pt",
        "voices/anna.safetensors",
    ]


def test_a_model_without_voices_is_complete(model):
    for path in (model / "voices").iterdir():
        path.unlink()
    (model / "voices").rmdir()

    assert len(select(model, model)) == 8


def test_every_missing_file_is_named_at_once(model):
    (model / "llm.pt").unlink()
    (model / "CosyVoice-BlankEN" / "vocab.json").unlink()

    reason, message, file = reason_and_message(model)

    assert (reason, file) == (Reason.MISSING_FILE, "llm.pt")
    assert message.startswith(f"llm.pt, CosyVoice-BlankEN/vocab.json missing in {model}: a CosyVoice2 directory has ")


def test_an_empty_directory_is_a_source_that_is_not_there(model, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()

    message = f"there is nothing in {empty}: its storage is not mounted, or nothing was copied there yet"
    assert reason_and_message(empty) == (Reason.SOURCE_UNREACHABLE, message, ".")
    assert reason_and_message(empty / "CosyVoice2-0.5B", empty) == (Reason.SOURCE_UNREACHABLE, message, ".")


def test_an_empty_volume_may_hold_what_its_file_system_needs(model, tmp_path):
    (tmp_path / "volume" / "lost+found").mkdir(parents=True)

    reason, _, _ = reason_and_message(tmp_path / "volume" / "CosyVoice2-0.5B", tmp_path / "volume")

    assert reason is Reason.SOURCE_UNREACHABLE


@pytest.mark.parametrize("yaml", ["cosyvoice.yaml", "cosyvoice3.yaml", "cosyvoice4.yaml"])
def test_another_version_is_named_rather_than_its_missing_files(model, yaml):
    (model / "cosyvoice2.yaml").rename(model / yaml)

    assert reason_and_message(model) == (
        Reason.UNKNOWN_VERSION,
        f"{model} holds {yaml}: this worker runs CosyVoice2 models only, whose yaml is cosyvoice2.yaml",
        yaml,
    )


def test_a_wrong_path_inside_the_claim_is_told_apart_from_an_unmounted_claim(model):
    wrong = model.parent / "CosyVoice2-0.5X"

    assert reason_and_message(wrong, model.parent)[:2] == (
        Reason.MISSING_FILE,
        f"no model directory at {wrong}: check the path in spec.source.uri",
    )
    assert reason_and_message(wrong, Path("/nowhere"))[:2] == (
        Reason.SOURCE_UNREACHABLE,
        "/nowhere is not there: the source is not mounted",
    )


def test_a_hub_cache_whose_files_are_links_to_blobs_is_followed(model):
    claim = model.parent
    (claim / "blobs").mkdir()
    (model / "llm.pt").rename(claim / "blobs" / "0123abcd")
    (model / "llm.pt").symlink_to("../blobs/0123abcd")

    selected = {file.path: file.real for file in select(model, claim)}

    assert selected["llm.pt"] == claim / "blobs" / "0123abcd"


def test_a_link_that_leaves_the_source_is_refused(model, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("token")
    (model / "flow.pt").unlink()
    (model / "flow.pt").symlink_to(secret)

    assert reason_and_message(model, model.parent) == (
        Reason.ACCESS_DENIED,
        f"flow.pt is a symbolic link to {secret}, outside of the source {model.parent}: copy the file into the source",
        "flow.pt",
    )


@pytest.mark.parametrize("through_a_link", [True, False])
def test_a_directory_outside_of_the_source_is_not_even_listed(model, tmp_path, through_a_link):
    claim = tmp_path / "other"
    claim.mkdir()
    directory = claim / "link" if through_a_link else claim / ".." / "claim" / model.name
    if through_a_link:
        directory.symlink_to(model)

    assert reason_and_message(directory, claim) == (
        Reason.ACCESS_DENIED,
        f"{directory} leads to {model}, outside of the source {claim}: copy the model into the source",
        ".",
    )


def test_a_dangling_link_is_a_missing_file(model):
    (model / "hift.pt").unlink()
    (model / "hift.pt").symlink_to("../blobs/gone")

    assert reason_and_message(model, model.parent) == (
        Reason.MISSING_FILE,
        "hift.pt is a symbolic link to ../blobs/gone, which does not exist",
        "hift.pt",
    )


def test_links_in_a_circle_are_told_as_such(model):
    (model / "hift.pt").unlink()
    (model / "hift.pt").symlink_to("other.pt")
    (model / "other.pt").symlink_to("hift.pt")

    assert reason_and_message(model) == (
        Reason.MISSING_FILE,
        "hift.pt is a symbolic link to other.pt, which leads back to it",
        "hift.pt",
    )


@pytest.mark.parametrize(("make", "kind"), [(os.mkfifo, "a named pipe"), (os.mkdir, "a directory")])
def test_what_is_no_regular_file_is_named_without_being_opened(model, make, kind):
    (model / "llm.pt").unlink()
    make(model / "llm.pt")

    reason, message, _ = reason_and_message(model)

    assert reason is Reason.CORRUPT_FILE
    assert re.fullmatch(f"llm.pt is {kind}, not a regular file", message)

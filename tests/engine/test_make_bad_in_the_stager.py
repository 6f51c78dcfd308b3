"""Bad directories as the stager meets them: refused, with the file and what to do, and nothing is left behind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from cosyvoice_worker.faults.fault import Damage
from cosyvoice_worker.faults.kit import FAULTS, make_bad
from cosyvoice_worker.outcome import Outcome, Phase, WorkerError
from cosyvoice_worker.settings import parse_settings
from cosyvoice_worker.staging.stage import stage
from cosyvoice_worker.staging.store import LOCK
from cosyvoice_worker.staging.task import Task
from tests.engine.engine_process import model_json

STAGED_FAULTS = [name for name, fault in FAULTS.items() if fault.phase is Phase.STAGE]

# Message, file, expected and actual. Sizes differ with the PyTorch that wrote the good model.
SAID = {
    "truncated-file": (
        "flow.pt ends before its zip directory: the file is cut off, copy it again",
        "flow.pt",
        "a zip directory at the end",
        "{half} bytes without one",
    ),
    "flipped-bit": (
        "the files at pvc://voices/model are not those of spec.source.digest: restore them, or set the digest to "
        "{other} if they are meant",
        None,
        "{digest}",
        "{other}",
    ),
    "lfs-pointer": (
        "llm.pt is a git-lfs pointer, not the file: run `git lfs pull` in the clone and copy the directory again",
        "llm.pt",
        "{llm} bytes",
        "a pointer of 132 bytes",
    ),
    "missing-file": (
        "hift.pt missing in {bad}: a CosyVoice2 directory has cosyvoice2.yaml, llm.pt, flow.pt, hift.pt, "
        "CosyVoice-BlankEN/config.json, CosyVoice-BlankEN/vocab.json, CosyVoice-BlankEN/merges.txt, "
        "CosyVoice-BlankEN/tokenizer_config.json",
        "hift.pt",
        None,
        None,
    ),
    "unknown-version": (
        "{bad} holds cosyvoice9.yaml: this worker runs CosyVoice2 models only, whose yaml is cosyvoice2.yaml",
        "cosyvoice9.yaml",
        "cosyvoice2.yaml",
        "cosyvoice9.yaml",
    ),
    "source-gone": (
        "there is nothing in {bad}: its storage is not mounted, or nothing was copied there yet",
        ".",
        "a model directory",
        "an empty directory",
    ),
    "full-tmpfs": (
        "the files need {mib} MiB, spec.staging.sizeLimit is 8192.0 MiB: set it to at least {whole}Mi",
        None,
        "{bytes} bytes",
        "8589934592 bytes",
    ),
}


@pytest.mark.parametrize("name", STAGED_FAULTS)
def test_the_stager_says_what_is_wrong_and_leaves_nothing(tiny_model_dir: Path, tmp_path: Path, name: str) -> None:
    bad, root = tmp_path / "bad", tmp_path / "root"
    damage = make_bad(FAULTS[name], tiny_model_dir, bad)

    outcome = staging_of(bad, root, digest_in(damage))

    assert (outcome.reason, outcome.phase) == (FAULTS[name].reason, Phase.STAGE)
    values = {
        "bad": bad,
        "digest": digest_in(damage),
        "other": outcome.actual,
        "half": (tiny_model_dir / "flow.pt").stat().st_size // 2,
        "llm": (tiny_model_dir / "llm.pt").stat().st_size,
        **room_in(outcome),
    }
    expected = tuple(None if text is None else text.format(**values) for text in SAID[name])
    assert (outcome.message, outcome.file, outcome.expected, outcome.actual) == expected
    assert [path.name for path in root.iterdir()] == [LOCK]


def staging_of(directory: Path, root: Path, digest: str | None) -> Outcome:
    """How staging fails."""
    settings = parse_settings(json.dumps(model_json(directory)).encode(), Phase.STAGE)
    source = msgspec.structs.replace(settings.source, digest=digest)
    task = Task(settings=msgspec.structs.replace(settings, source=source), document=b"{}", boundary=directory)
    with pytest.raises(WorkerError) as refused:
        stage(task, root)
    return refused.value.outcome


def digest_in(damage: Damage) -> str | None:
    """The digest that the fault needs to be found."""
    found = re.search(r"sha256:[0-9a-f]{64}", damage.needs or "")
    return found and found[0]


def room_in(outcome: Outcome) -> dict[str, object]:
    """The bytes that the files need, once in three units: they have to agree."""
    match = re.fullmatch(r"(\d+) bytes", outcome.expected or "")
    if match is None:
        return {}
    count = int(match[1])
    return {"bytes": count, "mib": f"{count / 2**20:.1f}", "whole": -(-count // 2**20)}

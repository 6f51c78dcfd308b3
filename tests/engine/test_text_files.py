"""The tokenizer's files: what is wrong with them, by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cosyvoice_worker.models.cosyvoice2.load import make_tokenizer
from cosyvoice_worker.outcome import Reason, WorkerError


@pytest.fixture
def directory(tiny_model_dir: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model that a test may spoil."""
    return Path(shutil.copytree(tiny_model_dir, tmp_path / "model"))


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("vocab.json", "{", Reason.INCOMPATIBLE_MODEL),
        ("vocab.json", '{"a": 5}', Reason.INCOMPATIBLE_MODEL),
        ("merges.txt", "#version: 0.2\nabsent pair\n", Reason.INCOMPATIBLE_MODEL),
        ("merges.txt", "#version: 0.2\nt\n", Reason.INCOMPATIBLE_MODEL),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"7": {"content": "x"}}}', Reason.INCOMPATIBLE_MODEL),
        ("tokenizer_config.json", '{"added_tokens_decoder": 3}', Reason.INCOMPATIBLE_MODEL),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"420": {"content": 3}}}', Reason.INCOMPATIBLE_MODEL),
        (
            "tokenizer_config.json",
            '{"added_tokens_decoder": {"420": {"content": "\\ud800"}}}',
            Reason.INCOMPATIBLE_MODEL,
        ),
        ("vocab.json", '{"\\ud800": 0}', Reason.INCOMPATIBLE_MODEL),
        ("vocab.json", "[" * 100_000, Reason.INCOMPATIBLE_MODEL),
        ("vocab.json", json.dumps({str(n): n for n in range(10**6 + 1)}), Reason.INCOMPATIBLE_MODEL),
        ("merges.txt", "t h\n" * (10**6 + 1), Reason.INCOMPATIBLE_MODEL),
        (
            "tokenizer_config.json",
            json.dumps({"added_tokens_decoder": {str(420 + n): {"content": str(n)} for n in range(10**4 + 1)}}),
            Reason.INCOMPATIBLE_MODEL,
        ),
        ("merges.txt", None, Reason.MISSING_FILE),
    ],
)
def test_tokenizer_files_that_cannot_be_used_are_named(
    file: str, text: str | None, reason: Reason, directory: Path
) -> None:
    path = directory / "CosyVoice-BlankEN" / file
    path.unlink()
    if text is not None:
        path.write_text(text, encoding="utf-8")

    with pytest.raises(WorkerError) as raised:
        make_tokenizer(directory)

    outcome = raised.value.outcome
    assert (outcome.exit_code, outcome.reason) == (66, reason)
    assert file in outcome.message

"""The recorded results only mean something while the tiny model keeps its every value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from dev.models import streams, tiny


def test_the_values_are_those_the_results_were_recorded_with(tiny_model_dir: Path) -> None:
    flow = torch.load(tiny_model_dir / "flow.pt", weights_only=True)

    digest = hashlib.sha256(flow["encoder.up_layer.conv.weight"].numpy().tobytes()).hexdigest()

    assert digest.startswith("d08f94630ce91f14")


def test_writing_it_twice_gives_the_same_bytes(tiny_model_dir: Path, tmp_path: Path) -> None:
    again = tiny.write(tmp_path / "again")

    for file in sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file()):
        assert (again / file).read_bytes() == (tiny_model_dir / file).read_bytes(), file


def test_the_vocabulary_ends_where_the_added_tokens_begin(tiny_model_dir: Path) -> None:
    folder = tiny_model_dir / tiny.TOKENIZER_DIR
    added = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))["added_tokens_decoder"]

    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))

    assert sorted(vocabulary.values()) == list(range(min(map(int, added))))


@pytest.mark.parametrize("draw", [streams.normal, streams.uniform], ids=["normal", "uniform"])
def test_a_longer_draw_starts_with_the_shorter_one(
    draw: Callable[[str, tuple[int, ...]], npt.NDArray[np.float64]],
) -> None:
    assert draw("a/tag", (3, 5)).reshape(-1)[:7].tolist() == draw("a/tag", (7,)).tolist()

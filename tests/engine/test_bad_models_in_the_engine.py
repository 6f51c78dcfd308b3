"""Models that can be staged but not loaded: the engine process names file and tensor and ends with its code."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from cosyvoice_worker.channel import Failed
from tests.engine.engine_process import EngineProcess, stage_model, write_config

State = dict[str, Tensor]


def change(file: str, how: Callable[[State], object]) -> Callable[[Path], None]:
    """Read a checkpoint of the model, change its tensors, write it back."""

    def apply(model: Path) -> None:
        state = torch.load(model / file, weights_only=True)
        how(state)
        torch.save(state, model / file)

    return apply


def replace_text(file: str, old: str, new: str) -> Callable[[Path], None]:
    def apply(model: Path) -> None:
        text = (model / file).read_text()
        assert old in text
        (model / file).write_text(text.replace(old, new))

    return apply


@dataclass(frozen=True)
class Case:
    name: str
    damage: Callable[[Path], None]
    code: int
    expected: Failed


CASES = [
    Case(
        "missing tensor",
        change("flow.pt", lambda state: state.pop("encoder.after_norm.weight")),
        66,
        Failed(
            id=0,
            reason="MissingTensor",
            message="flow.pt lacks the tensor encoder.after_norm.weight: "
            "is it of the same model as the directory's yaml?",
            phase="Build",
            file="flow.pt",
            tensor="encoder.after_norm.weight",
            expected="tensor encoder.after_norm.weight",
            actual="absent",
        ),
    ),
    Case(
        "unexpected tensor",
        change("hift.pt", lambda state: state.update(extra=torch.zeros(3))),
        66,
        Failed(
            id=0,
            reason="UnexpectedTensor",
            message="hift.pt has a tensor extra that this model does not have",
            phase="Build",
            file="hift.pt",
            tensor="extra",
            expected="absent",
            actual="tensor extra",
        ),
    ),
    Case(
        "wrong shape",
        change("llm.pt", lambda state: state.update({"llm_embedding.weight": torch.zeros(2, 31)})),
        66,
        Failed(
            id=0,
            reason="ShapeMismatch",
            message="llm.pt: llm_embedding.weight has the shape [2, 31], the model needs [2, 32]",
            phase="Build",
            file="llm.pt",
            tensor="llm_embedding.weight",
            expected="[2, 32]",
            actual="[2, 31]",
        ),
    ),
    Case(
        "yaml of a later model under this version's name",
        replace_text("cosyvoice2.yaml", "cosyvoice.llm.llm.Qwen2LM", "cosyvoice.llm.llm.CosyVoice9LM"),
        66,
        Failed(
            id=0,
            reason="IncompatibleModel",
            message="cosyvoice2.yaml: llm should be Qwen2LM, but is 'CosyVoice9LM'",
            phase="Map",
            file="cosyvoice2.yaml",
            expected="llm: Qwen2LM",
            actual="llm: CosyVoice9LM",
        ),
    ),
    Case(
        "weights that are no numbers",
        change("hift.pt", lambda state: state["conv_post.bias"].fill_(torch.nan)),
        70,
        Failed(
            id=0,
            reason="NonFiniteAudio",
            message="warm-up of 'Hello, this is a warm-up.' with the built-in voice, not streaming: "
            "the model gave samples that are no numbers: its weights are damaged, or its dtype is too narrow",
            phase="WarmUp",
            expected="finite samples",
            actual="NaN or infinity",
        ),
    ),
]


@pytest.fixture
def model(tiny_model_dir: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model_dir, tmp_path / "model"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_engine_says_what_is_wrong_with_the_model_and_ends_with_its_code(model, tmp_path, case):
    case.damage(model)
    stage_model(model, tmp_path / "root")

    with EngineProcess(tmp_path / "root", write_config(tmp_path / "model.json"), tmp_path / "voices") as engine:
        failed, code = engine.until(Failed), engine.process.wait(60)

    assert failed == case.expected
    assert code == case.code


def test_an_engine_without_staged_weights_says_so(tmp_path):
    with EngineProcess(tmp_path / "root", write_config(tmp_path / "model.json"), tmp_path / "voices") as engine:
        failed, code = engine.until(Failed), engine.process.wait(60)

    assert (failed.reason, failed.phase, failed.file) == ("MissingFile", "Map", str(tmp_path / "root" / "staged.json"))
    assert code == 66

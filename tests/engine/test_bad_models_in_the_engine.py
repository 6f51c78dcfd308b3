"""Models that can be staged but not loaded: the engine process names file and tensor and ends with its code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from cosyvoice_worker.channel import Failed
from cosyvoice_worker.faults.kit import FAULTS, make_bad
from cosyvoice_worker.outcome import EXIT_CODES
from tests.engine.engine_process import EngineProcess, stage_model, write_config


@dataclass(frozen=True)
class Case:
    fault: str
    message: str
    file: str | None = None
    tensor: str | None = None
    expected: str | None = None
    actual: str | None = None


CASES = [
    Case(
        "missing-tensor",
        "flow.pt lacks the tensor encoder.after_norm.weight: is it of the same model as the directory's yaml?",
        file="flow.pt",
        tensor="encoder.after_norm.weight",
        expected="tensor encoder.after_norm.weight",
        actual="absent",
    ),
    Case(
        "unexpected-tensor",
        "hift.pt has a tensor stranger.weight that this model does not have",
        file="hift.pt",
        tensor="stranger.weight",
        expected="absent",
        actual="tensor stranger.weight",
    ),
    Case(
        "wrong-shape",
        "llm.pt: llm_embedding.weight has the shape [2, 31], the model needs [2, 32]",
        file="llm.pt",
        tensor="llm_embedding.weight",
        expected="[2, 32]",
        actual="[2, 31]",
    ),
    Case(
        "unknown-class",
        "cosyvoice2.yaml: llm should be Qwen2LM, but is 'CosyVoice9LM'",
        file="cosyvoice2.yaml",
        expected="llm: Qwen2LM",
        actual="llm: CosyVoice9LM",
    ),
    Case(
        "out-of-memory",
        "loading hift.pt ({size} bytes) asks for more memory than is to be had: raise the memory limit of the worker "
        "container, or copy the file again if it should not need so much",
        file="hift.pt",
    ),
    Case(
        "nan-weight",
        "warm-up of 'Hello, this is a warm-up.' with the built-in voice, not streaming: "
        "the model gave samples that are no numbers: its weights are damaged, or its dtype is too narrow",
        expected="finite samples",
        actual="NaN or infinity",
    ),
    Case(
        "silent-audio",
        "warm-up of 'Hello, this is a warm-up.' with voice 'rehearsal', not streaming: the audio is silent",
        expected="a peak of at least 0.001",
        actual="0.0",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
def test_the_engine_says_what_is_wrong_with_the_model_and_ends_with_its_code(
    tiny_model_dir: Path, tmp_path: Path, case: Case
) -> None:
    fault = FAULTS[case.fault]
    make_bad(fault, tiny_model_dir, tmp_path / "model")
    stage_model(tmp_path / "model", tmp_path / "root")

    with EngineProcess(tmp_path / "root", write_config(tmp_path / "model.json"), tmp_path / "voices") as engine:
        failed, code = engine.until(Failed), engine.process.wait(60)

    assert failed == Failed(
        id=0,
        reason=fault.reason,
        phase=fault.phase,
        message=case.message.format(size=(tmp_path / "model" / "hift.pt").stat().st_size),
        file=case.file,
        tensor=case.tensor,
        expected=case.expected,
        actual=case.actual,
    )
    assert code == EXIT_CODES[fault.reason]


def test_an_engine_without_staged_weights_says_so(tmp_path: Path) -> None:
    with EngineProcess(tmp_path / "root", write_config(tmp_path / "model.json"), tmp_path / "voices") as engine:
        failed, code = engine.until(Failed), engine.process.wait(60)

    assert (failed.reason, failed.phase, failed.file) == (
        "MissingFile",
        "Map",
        str(tmp_path / "root" / "revisions" / "3f9a1c0b7d.json"),
    )
    assert code == 66

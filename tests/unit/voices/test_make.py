"""From a recording to a pack, with the ONNX files of a model directory."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from cosyvoice_worker.outcome import Reason
from cosyvoice_worker.voices import make, pack
from cosyvoice_worker.voices.audio import Recording
from cosyvoice_worker.voices.errors import VoiceError
from cosyvoice_worker.voices.resample import resample
from dev.models import prompt
from dev.models.tiny import RECIPE


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """What a voice needs of a model directory: the yaml and the two ONNX files."""
    return shutil.copytree(RECIPE / "side", tmp_path / "model")


def wave(seconds: float, rate: int = 24000) -> Recording:
    once = resample((prompt.wave() / 32768).astype(np.float32), prompt.SAMPLE_RATE, rate)
    return Recording(np.resize(once, round(seconds * rate)), rate)


def test_the_pack_is_complete_and_names_the_files_that_made_it(model: Path) -> None:
    made = make.make_pack(model, wave(1.5), "It is a prompt.")

    assert pack.decode(pack.encode(made), "f") == made
    assert (made.tokens, made.prompt_text, made.family) == (37, "It is a prompt.", "cosyvoice2")
    for file, digest in (
        ("speech_tokenizer_v2.onnx", made.speech_tokenizer_sha256),
        ("campplus.onnx", made.campplus_sha256),
    ):
        assert hashlib.sha256((model / file).read_bytes()).hexdigest() == digest


def test_making_it_twice_gives_the_same_file(model: Path) -> None:
    first, second = (pack.encode(make.make_pack(model, wave(1.0), "Twice.")) for _ in range(2))

    assert first == second


@pytest.mark.parametrize("rate", [16000, 22050, 44100, 48000, 192000])
def test_any_rate_of_a_recorder_gives_about_the_same_voice(rate: int, model: Path) -> None:
    reference = np.frombuffer(make.make_pack(model, wave(1.5), "").embedding, "<f4")

    other = np.frombuffer(make.make_pack(model, wave(1.5, rate), "").embedding, "<f4")

    assert np.dot(reference, other) / np.linalg.norm(reference) / np.linalg.norm(other) > 0.99


@pytest.mark.parametrize(("seconds", "rate", "tokens"), [(0.5, 48000, 12), (30.0, 16000, 750), (30.0, 44100, 750)])
def test_the_shortest_and_the_longest_recording_fit(seconds: float, rate: int, tokens: int, model: Path) -> None:
    assert pack.decode(pack.encode(make.make_pack(model, wave(seconds, rate), "Fits.")), "f").tokens == tokens


@pytest.mark.parametrize(
    ("tokens", "frames", "kept"), [(37, 75, 37), (38, 75, 37), (30, 75, 30), (37, 74, 37), (37, 1, 0), (0, 75, 0)]
)
def test_tokens_and_frames_are_cut_to_what_both_have(tokens: int, frames: int, kept: int) -> None:
    ids, mel = np.arange(tokens, dtype=np.int32), np.arange(frames * 80, dtype=np.float32).reshape(frames, 80)

    cut_ids, cut_mel = make.align(ids, mel)

    assert np.array_equal(cut_ids, ids[:kept])
    assert np.array_equal(cut_mel, mel[: 2 * kept])


def test_a_directory_of_another_generation_is_refused(model: Path) -> None:
    (model / "cosyvoice2.yaml").rename(model / "cosyvoice3.yaml")

    with pytest.raises(VoiceError) as refused:
        make.make_pack(model, wave(1.0), "")

    assert str(refused.value) == f"{model}: no CosyVoice2 model: cosyvoice2.yaml is not there"
    assert refused.value.outcome.reason is Reason.UNKNOWN_VERSION


@pytest.mark.parametrize("file", ["speech_tokenizer_v2.onnx", "campplus.onnx"])
@pytest.mark.parametrize(
    ("content", "message", "reason"),
    [
        (None, "cannot be read (No such file or directory)", Reason.MISSING_FILE),
        (b"", "not a model that onnxruntime can load (", Reason.CORRUPT_FILE),
        (b"\x00" * 100, "not a model that onnxruntime can load (", Reason.CORRUPT_FILE),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 496082973\n",
            "a git-lfs pointer, not the file: run `git lfs pull` in the clone",
            Reason.LFS_POINTER,
        ),
    ],
)
def test_an_onnx_file_that_is_missing_or_damaged_is_named(
    content: bytes | None, message: str, reason: Reason, file: str, model: Path
) -> None:
    (model / file).unlink()
    if content is not None:
        (model / file).write_bytes(content)

    with pytest.raises(VoiceError) as refused:
        make.make_pack(model, wave(1.0), "")

    assert str(refused.value).startswith(f"{model / file}: {message}")
    assert refused.value.outcome.reason is reason


def test_onnx_files_that_were_swapped_are_refused(model: Path) -> None:
    (model / "campplus.onnx").write_bytes((model / "speech_tokenizer_v2.onnx").read_bytes())

    with pytest.raises(VoiceError) as refused:
        make.make_pack(model, wave(1.0), "")

    assert str(refused.value) == f"{model / 'campplus.onnx'}: inputs: expected 1, got feats, feats_length"


def test_without_onnxruntime_the_extra_to_install_is_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, onnxruntime.__name__, None)

    with pytest.raises(VoiceError) as refused:
        make.make_pack(model, wave(1.0), "")

    assert str(refused.value) == "onnxruntime is not installed: pip install 'cosyvoice-operator[voices]'"


def test_the_model_directory_may_be_read_only_and_stays_as_it_was(model: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in model.rglob("*"))

    make.make_pack(model, wave(1.0), "")

    assert sorted((path, path.stat().st_mtime_ns) for path in model.rglob("*")) == before

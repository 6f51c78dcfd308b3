"""A published directory ships no voices: `make-voice` makes one, and `synthesize` speaks with it."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from cosyvoice_worker.__main__ import main
from cosyvoice_worker.voices import files
from cosyvoice_worker.voices.registry import model_voices
from cosyvoice_worker.voices.voice import from_pack
from dev.models import prompt

TEXT = "Hello there, this is a short test."
TOKEN_SAMPLES = 960

Synthesize = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The commands set what libraries read from the environment; other tests are to see none of it."""
    before = dict(os.environ)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def model(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with one voice, made as its user would."""
    directory = tmp_path_factory.mktemp("published")
    for entry in tiny_model_dir.iterdir():
        (directory / entry.name).symlink_to(entry)
    assert model_voices(directory).names() == []
    (directory / "voices").mkdir()
    recording = prompt.write(directory / "prompt.wav")
    said = ("--text", "It is a prompt.")
    source = ("--model", str(directory), "--audio", str(recording))
    assert main(["make-voice", *source, *said, "--out", str(directory / "voices"), "ann"]) == 0
    return directory


@pytest.fixture
def synthesize(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Synthesize:
    """Run the command; its report."""

    def run(*options: str) -> dict[str, Any]:
        out = str(tmp_path / "out.wav")
        assert main(["synthesize", "--model", str(model), "--text", TEXT, "--json", "--out", out, *options]) == 0
        report: dict[str, Any] = json.loads(capsys.readouterr().out)
        return report

    return run


def test_the_voice_is_the_recorded_one(model: Path, golden: Any, close: Callable[..., None]) -> None:
    voice = from_pack("ann", model_voices(model).read("ann"))

    assert np.array_equal(voice.prompt_token, golden["fe/speech_token"][0, :37])
    close(voice.prompt_mel, golden["fe/prompt_mel"][0, :74])
    close(voice.embedding, golden["fe/campplus_out"][0])


def test_it_speaks(synthesize: Synthesize) -> None:
    report = synthesize("--seed", "7")

    samples, rate = soundfile.read(report["file"])
    assert (report["voice"], report["seed"], report["dtype"]) == ("ann", 7, "float32")
    assert rate == report["sampleRate"] == 24000
    assert len(samples) == report["samples"] == report["speechTokens"] * TOKEN_SAMPLES > 0
    assert np.abs(samples).max() > 0.01


def test_a_pack_file_of_the_same_content_says_the_same(synthesize: Synthesize, model: Path, tmp_path: Path) -> None:
    elsewhere = shutil.copy(model / "voices" / "ann.safetensors", tmp_path / "bob.safetensors")

    by_name, by_file = synthesize("--voice", "ann"), synthesize("--voice", str(elsewhere))

    assert by_file["voice"] == "bob"
    assert by_file["speechTokensSha256"] == by_name["speechTokensSha256"]


def test_a_stream_says_the_same_tokens(synthesize: Synthesize) -> None:
    whole, stream = synthesize(), synthesize("--stream")

    assert stream["speechTokensSha256"] == whole["speechTokensSha256"]
    assert stream["samples"] == whole["samples"]
    assert stream["firstChunkSeconds"] < stream["synthesisSeconds"]


def test_instructions_and_seed_change_what_is_said_and_speed_its_length(synthesize: Synthesize) -> None:
    plain, slowly, other, fast = (
        synthesize(),
        synthesize("--instructions", "speak slowly"),
        synthesize("--seed", "1"),
        synthesize("--speed", "2"),
    )

    assert len({report["speechTokensSha256"] for report in (plain, slowly, other)}) == 3
    assert fast["speechTokensSha256"] == plain["speechTokensSha256"]
    assert fast["samples"] == plain["samples"] // 2


@pytest.mark.parametrize(
    ("options", "ended"),
    [
        (("--voice", "alloy"), (64, "there is no voice 'alloy'; there are: ann")),
        (("--voice", "none.safetensors"), (66, "none.safetensors: cannot be read (No such file or directory)")),
        (("--text", "?!"), (64, "the text has no letter or digit: there is nothing to speak")),
        (("--text", "\udcff"), (64, "--text is not UTF-8")),
        (("--stream", "--speed", "2"), (64, "speed 2 cannot be streamed: leave it at 1 or do not stream")),
        (("--out", "/none/out.wav"), (66, "--out /none/out.wav: there is no directory /none")),
    ],
)
def test_what_is_wrong_is_said_with_the_exit_code(
    options: tuple[str, ...], ended: tuple[int, str], model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out.wav"

    with caplog.at_level(logging.ERROR):
        code = main(["synthesize", "--model", str(model), "--text", TEXT, "--out", str(out), *options])

    assert (code, *caplog.messages) == ended
    assert not out.exists()


def test_the_report_is_readable_and_the_command_runs_by_itself(model: Path, tmp_path: Path) -> None:
    """As a user runs it: a process of its own, in words."""
    options = ["--model", str(model), "--voice", "ann", "--text", TEXT, "--out", str(tmp_path / "out.wav")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}

    ended = subprocess.run(
        [sys.executable, "-m", "cosyvoice_worker", "synthesize", *options],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )

    file, voice, tokens, times = ended.stdout.splitlines()
    assert re.fullmatch(rf"{tmp_path}/out\.wav: \d+\.\d\d s at 24000 Hz \(\d+ samples\)", file)
    assert voice == "voice: ann"
    assert re.fullmatch(r"speech tokens: \d+, sha256 [0-9a-f]{64}", tokens)
    assert re.fullmatch(r"load: .* s; synthesis: .* s, first audio after .* s; real-time factor [\d.]+", times)


def test_a_broken_voice_does_not_keep_the_others_from_speaking(model: Path, tmp_path: Path) -> None:
    pack = files.read(model / "voices" / "ann.safetensors")
    directory = tmp_path / "voices"
    directory.mkdir()
    files.write(pack, directory / "ann.safetensors")
    (directory / "bob.safetensors").write_bytes(b"broken")

    voices = model_voices(tmp_path)

    assert voices.names() == ["ann"]
    assert from_pack("ann", voices.read("ann")).prompt_mel.shape == (74, 80)

"""`cosyvoice-worker make-voice`."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from cosyvoice_worker.__main__ import main
from cosyvoice_worker.voices import files
from dev.models import prompt
from dev.models.tiny import RECIPE

MODEL = str(RECIPE / "side")


@pytest.fixture
def recording(tmp_path: Path) -> str:
    return str(prompt.write(tmp_path / "prompt.wav"))


def test_the_pack_is_written_where_asked(recording: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path)

    code = main(["make-voice", "--model", MODEL, "--audio", recording, "--text", "Hi.", "--out", out, "ann"])

    assert code == 0
    assert files.read(tmp_path / "ann.safetensors").prompt_text == "Hi."
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"{tmp_path}/ann.safetensors: 37 speech tokens, 1.48 s\n"


def test_the_pack_is_written_here_by_default(recording: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["make-voice", "--model", MODEL, "--audio", recording, "--text", "", "ann"]) == 0

    assert (tmp_path / "ann.safetensors").exists()


def test_a_configmap_is_printed_and_nothing_written(
    recording: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--configmap", "narrator", "--namespace", "speech"]

    assert main(["make-voice", "--model", MODEL, "--audio", recording, "--text", "Hi.", "ann", *options]) == 0

    configmap = json.loads(capsys.readouterr().out)
    assert configmap["kind"] == "ConfigMap"
    assert configmap["metadata"] == {"name": "narrator-voices", "namespace": "speech"}
    assert [path.name for path in tmp_path.iterdir()] == ["prompt.wav"]


@pytest.mark.parametrize(
    ("changed", "ended"),
    [
        ({"name": "Ann"}, (64, "voice name: expected 1 to 63 of a-z, 0-9 and -, not beginning with -, got 'Ann'")),
        ({"--text": "a" * 1001}, (64, "prompt_text: expected at most 1000 characters, got 1001")),
        ({"--text": "\udcff"}, (64, r"prompt_text: expected UTF-8, got '\udcff'")),
        ({"--configmap": "A"}, (64, "--configmap: expected the name of a CosyVoiceModel, got 'A'")),
        ({"--audio": "/none.wav"}, (66, "/none.wav: cannot be read (No such file or directory)")),
        ({"--model": "/none"}, (66, "/none: no CosyVoice2 model: cosyvoice2.yaml is not there")),
        ({"--out": "/none"}, (66, "/none/ann.safetensors: cannot be written (No such file or directory)")),
    ],
)
def test_what_is_wrong_is_said_with_the_exit_code(
    changed: dict[str, str], ended: tuple[int, str], recording: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"--model": MODEL, "--audio": recording, "--text": "Hi.", "--out": str(tmp_path), "name": "ann"}
    options |= changed
    name = options.pop("name")

    with caplog.at_level(logging.ERROR):
        code = main(["make-voice", name, *(word for option in options.items() for word in option)])

    assert (code, *caplog.messages) == ended

"""A model directory for tests of staging, which looks at containers and names and never at tensors."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REVISION = "3f9a1c0b7d"

FILES = (
    "CosyVoice-BlankEN/config.json",
    "CosyVoice-BlankEN/merges.txt",
    "CosyVoice-BlankEN/tokenizer_config.json",
    "CosyVoice-BlankEN/vocab.json",
    "cosyvoice2.yaml",
    "flow.pt",
    "hift.pt",
    "llm.pt",
    "voices/anna.safetensors",
)


def write_checkpoint(path: Path, payload: bytes) -> None:
    """The container torch.save writes: a zip archive of uncompressed records."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
        archive.writestr("archive/data/0", payload)


def write_safetensors(path: Path, data: bytes) -> None:
    header = json.dumps({"embedding": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A complete directory in the published layout, with files beside it that are not staged."""
    directory = tmp_path / "claim" / "CosyVoice2-0.5B"
    (directory / "CosyVoice-BlankEN").mkdir(parents=True)
    (directory / "voices").mkdir()
    for name in FILES:
        path = directory / name
        if path.suffix == ".pt":
            write_checkpoint(path, name.encode() * 5000)
        elif path.suffix == ".safetensors":
            write_safetensors(path, b"voice" * 10)
        else:
            path.write_text(f"content of {name}\n")
    for name in (
        "campplus.onnx",
        "README.md",
        "llm.rl.pt",
        "CosyVoice-BlankEN/model.safetensors",
        "voices/Bad Name.safetensors",
    ):
        (directory / name).write_bytes(b"not staged")
    return directory


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The tmpfs."""
    return tmp_path / "tmpfs"


def model_json(model: Path, revision: str = REVISION) -> dict[str, Any]:
    """The document of a model that lies in `model`."""
    return {
        "schema": 1,
        "namespace": "speech",
        "model": "narrator",
        "version": "v1.2.0",
        "revision": revision,
        "source": {"uri": "pvc://voices/CosyVoice2-0.5B", "path": str(model), "digest": None},
        "staging": {"sizeLimitBytes": 2**33, "verify": "Once"},
        "engine": {
            "device": "cpu",
            "dtype": "auto",
            "loadTimeoutSeconds": 600,
            "preload": True,
            "fallbackToCPU": False,
            "warmUp": {"texts": ["Hello, this is a warm-up."], "voice": None, "maxSeconds": 1.0},
        },
    }


@dataclass(frozen=True)
class Run:
    """How a run of `cosyvoice-worker stage` ended: exit code, termination message, log lines, seconds."""

    code: int
    message: dict[str, Any]
    log: list[dict[str, Any]]


class StageCommand:
    """The real command line, as the pod runs it."""

    def __init__(self, model: Path, root: Path, folder: Path) -> None:
        self.root = root
        self.config = folder / "model.json"
        self.termination_log = folder / "termination-log"
        self.document = model_json(model)

    def arguments(self) -> list[str]:
        self.config.write_text(json.dumps(self.document))
        self.termination_log.write_text("")
        options = ["--config", self.config, "--root", self.root, "--termination-log", self.termination_log]
        return [sys.executable, "-m", "cosyvoice_worker", "stage", *map(str, options)]

    def start(self, *options: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        return subprocess.Popen([*before, *self.arguments(), *options], stderr=subprocess.PIPE, text=True)

    def finish(self, process: subprocess.Popen[str]) -> Run:
        _, errors = process.communicate(timeout=120)
        text = self.termination_log.read_text()
        return Run(
            process.returncode, json.loads(text) if text else {}, [json.loads(line) for line in errors.splitlines()]
        )

    def run(self, *before: str) -> Run:
        """Run to the end; `before` is put before the command, `unshare` for example."""
        return self.finish(self.start(before=before))


@pytest.fixture
def stage_command(model: Path, root: Path, tmp_path: Path) -> StageCommand:
    return StageCommand(model, root, tmp_path)

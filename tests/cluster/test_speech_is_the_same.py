"""The Service says what `cosyvoice-worker synthesize` says: in the same image exactly, under another torch closely."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dev import images
from dev.demo import source, speak
from dev.demo.speak import WAV_HEADER_BYTES, Speech
from dev.images import Mount
from dev.playground import Playground

TEXT = "Hello there, this is a short test, and it goes on."
SEED = 7
VOICE = "demo"
PACK = f"{VOICE}.safetensors"


@pytest.fixture(scope="module")
def voice(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the pack of a voice made from the small model's prompt recording."""
    folder = tmp_path_factory.mktemp("voice")
    model, recording = source.make_tiny(weights.parent)
    subprocess.run(
        [
            sys.executable, "-m", "cosyvoice_worker", "make-voice", "--model", model, "--audio", recording,
            "--text", source.TINY_PROMPT_TEXT, "--out", folder, VOICE,
        ],
        check=True,
    )  # fmt: skip
    folder.chmod(0o755)
    (folder / PACK).chmod(0o644)
    return folder


def from_the_service(playground: Playground, tiny_path: str, voice: Path) -> Speech:
    """What the model says in the cluster, with the voice in its ConfigMap."""
    playground.run("create", "configmap", "same-voices", f"--from-file={voice / PACK}")
    playground.apply_model("same", path=tiny_path)
    playground.wait_ready("same")
    with speak.port_forward(playground.kubectl, playground.namespace, "same") as url:
        return speak.say(url, TEXT, VOICE, SEED, timeout=120)


def arguments(model: str, voice: str, out: str) -> list[str]:
    """`cosyvoice-worker synthesize` with the same text, voice and seed."""
    return [
        "synthesize",
        "--model",
        model,
        "--voice",
        voice,
        "--text",
        TEXT,
        "--seed",
        str(SEED),
        "--out",
        out,
        "--json",
    ]


def samples(wav: bytes) -> npt.NDArray[np.int32]:
    return np.frombuffer(wav[WAV_HEADER_BYTES:], "<i2").astype(np.int32)


def test_service_image_and_development_torch_agree(
    playground: Playground, tiny_path: str, weights: Path, voice: Path, tmp_path: Path
) -> None:
    model = weights / source.TINY_NAME
    outside = tmp_path / "image"
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)

    served = from_the_service(playground, tiny_path, voice)
    mounts = [Mount(model, "/model"), Mount(voice, "/voice"), Mount(outside, "/out", writable=True)]
    command = ["cosyvoice-worker", *arguments("/model", f"/voice/{PACK}", "/out/image.wav")]
    in_image = images.run("worker", command, mounts=mounts, timeout=300)
    assert in_image.returncode == 0, in_image.stderr
    here = subprocess.run(
        [
            sys.executable,
            "-m",
            "cosyvoice_worker",
            *arguments(str(model), str(voice / PACK), str(tmp_path / "here.wav")),
        ],
        check=True,
        capture_output=True,
        text=True,
    )

    reports: list[dict[str, Any]] = [json.loads(in_image.stdout), json.loads(here.stdout)]
    for report in reports:
        assert report["speechTokens"] == served.speech_tokens
        assert report["speechTokensSha256"] == served.speech_tokens_sha256
    spoken = samples(served.wav)
    same_image = samples((outside / "image.wav").read_bytes())
    other_torch = samples((tmp_path / "here.wav").read_bytes())
    assert len(spoken) == len(same_image) == len(other_torch)
    assert np.abs(spoken - same_image).max() <= 1
    assert np.mean(np.abs(spoken - other_torch) <= 5e-2 * 32767) >= 0.999

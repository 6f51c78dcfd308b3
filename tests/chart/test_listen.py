"""What `helm test` runs: it hears a voice as one, and everything else as what it is."""

from __future__ import annotations

import array
import importlib.util
import io
import math
import sys
import wave
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio.to_thread
import pytest

from cosyvoice_worker.server.api_keys import ApiKeys
from dev.helm import CHART
from tests.unit.server import fake_engine
from tests.unit.server.running_front import HOST, running_front

RATE = 24000


def load_script() -> ModuleType:
    """The script as a module; in the cluster it is a file of a ConfigMap."""
    specification = importlib.util.spec_from_file_location("listen", CHART / "files" / "listen.py")
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    sys.modules["listen"] = module  # where dataclasses look for it
    specification.loader.exec_module(module)
    return module


script = load_script()


def recording(
    seconds: float = 1.0, *, amplitude: float = 8000, rate: int = RATE, channels: int = 1, width: int = 2
) -> bytes:
    """A wav file of a 440 Hz tone."""
    count = round(seconds * rate) * channels
    tone = array.array("h", (round(amplitude * math.sin(2 * math.pi * 440 * n / rate)) for n in range(count)))
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(width)
        out.setframerate(rate)
        out.writeframes(tone.tobytes())
    return file.getvalue()


def test_a_voice_is_described() -> None:
    heard = script.listen(recording(1.5, amplitude=32767), RATE)

    assert (heard.rate, heard.seconds, round(heard.level)) == (RATE, 1.5, -3)


@pytest.mark.parametrize(
    ("audio", "complaint"),
    [
        (b"<html>Bad Gateway</html>", "no wav file .*Bad Gateway"),
        (b"", "no wav file"),
        (recording()[:-2000], "cut off: 23000 of 24000 samples"),
        (recording(0.1), "0.10 s of audio, expected 0.2 to 120"),
        (recording(121.0, rate=16000), "the rate is 16000 Hz, X-CosyVoice-Sample-Rate says 24000"),
        (recording(amplitude=0), "silence: -inf dB of full scale"),
        (recording(amplitude=20), "silence: -67 dB of full scale"),
        (recording(channels=2), "expected one channel of 16 bits, got 2 of 16"),
        (recording(width=1), "expected one channel of 16 bits, got 1 of 8"),
        (recording(rate=44100), "the rate is 44100 Hz, X-CosyVoice-Sample-Rate says 24000"),
    ],
)
def test_what_is_no_voice_is_called_what_it_is(audio: bytes, complaint: str) -> None:
    with pytest.raises(script.NotHeardError, match=complaint):
        script.listen(audio, RATE)


@pytest.mark.parametrize(
    ("rate", "seconds", "complaint"), [(8000, 1.0, "8000 Hz"), (16000, 121.0, "121.00 s of audio")]
)
def test_rate_and_length_have_bounds_of_their_own(rate: int, seconds: float, complaint: str) -> None:
    with pytest.raises(script.NotHeardError, match=complaint):
        script.listen(recording(seconds, rate=rate), rate)


def model(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "narrator", "namespace": "speech", "generation": 2},
        "spec": {"version": "v1", "worker": {"replicas": 1}, "service": {"port": 8080}},
        "status": {"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True"}], **status},
    }


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({}, True),
        ({"observedGeneration": 1}, False),
        ({"conditions": []}, False),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, False),
        ({"conditions": [{"type": "Available", "status": "True"}]}, False),
    ],
)
def test_a_model_is_ready_when_its_newest_spec_is(status: dict[str, Any], ready: bool) -> None:
    assert script.holds(model(**status), "Ready") is ready


def test_a_model_is_spoken_to_at_its_service() -> None:
    assert script.url_of(model()) == "http://narrator.speech.svc:8080/v1/audio/speech"


def test_a_model_without_replicas_is_not_spoken_to() -> None:
    resting = model() | {"spec": {"version": "v1", "worker": {"replicas": 0}}}

    assert script.hear(resting, "Hello.", "", 1.0) == "no replicas are wanted, nothing to hear"


async def test_a_worker_is_asked_as_it_wants_to_be_asked() -> None:
    async with running_front(fake_engine.good) as front:
        url = f"http://{HOST}:{front.api_port}/v1/audio/speech"
        audio, rate = await anyio.to_thread.run_sync(script.speak, url, "Hello there.", "anna", 30.0)

    with wave.open(io.BytesIO(audio)) as file:
        assert (file.getframerate(), rate) == (RATE, RATE)


async def test_a_worker_that_wants_a_key_is_sent_the_first_of_the_secret(tmp_path: Path) -> None:
    for name in ("ann", "ben"):
        (tmp_path / name).write_text(f"{name}-0123456789abcdef\n")
    async with running_front(fake_engine.good, api_keys=ApiKeys(tmp_path)) as front:
        url = f"http://{HOST}:{front.api_port}/v1/audio/speech"
        key = script.first_key(tmp_path)
        audio, _ = await anyio.to_thread.run_sync(script.speak, url, "Hello.", "anna", 10.0, key)
        with pytest.raises(script.NotHeardError, match=r"answered 401: .*an API key is needed"):
            await anyio.to_thread.run_sync(script.speak, url, "Hello.", "anna", 10.0)

    assert (key, audio[:4]) == ("ann-0123456789abcdef", b"RIFF")


def test_an_empty_secret_is_told(tmp_path: Path) -> None:
    with pytest.raises(script.NotHeardError, match=r"test\.apiKeysSecret names is empty"):
        script.first_key(tmp_path)


async def test_a_workers_refusal_is_told_in_its_words() -> None:
    async with running_front(fake_engine.good) as front:
        url = f"http://{HOST}:{front.api_port}/v1/audio/speech"
        with pytest.raises(script.NotHeardError, match=r"answered 404: .*nobody"):
            await anyio.to_thread.run_sync(script.speak, url, "Hello there.", "nobody", 30.0)


def test_a_worker_that_is_not_there_is_told_with_its_address() -> None:
    with pytest.raises(script.NotHeardError, match=r"http://127\.0\.0\.1:9/v1: .*refused"):
        script.speak("http://127.0.0.1:9/v1", "Hello.", "", 5.0)

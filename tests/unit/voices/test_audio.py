"""Recordings: what is read, and what cannot be a prompt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from cosyvoice_worker.voices.audio import SAMPLE_RATES, read_recording
from cosyvoice_worker.voices.errors import VoiceError


def tone(seconds: float, rate: int = 24000, level: float = 0.5) -> np.ndarray:
    return (level * np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


@pytest.mark.parametrize(
    ("container", "subtype", "tolerance"),
    [
        ("wav", "PCM_16", 1e-4),
        ("wav", "FLOAT", 0),
        ("wav", "PCM_U8", 1e-2),
        ("flac", "PCM_24", 1e-6),
        ("ogg", "VORBIS", 0.2),
        ("mp3", "MPEG_LAYER_III", 0.2),
    ],
)
def test_common_files_are_read(container: str, subtype: str, tolerance: float, tmp_path: Path) -> None:
    path = tmp_path / f"prompt.{container}"
    soundfile.write(path, tone(1.0), 24000, subtype=subtype)

    recording = read_recording(path)

    assert recording.sample_rate == 24000
    assert recording.samples.dtype == np.float32
    assert abs(recording.seconds - 1.0) < 0.1
    if container in ("wav", "flac"):
        np.testing.assert_allclose(recording.samples, tone(1.0), atol=tolerance)


def test_channels_are_averaged(tmp_path: Path) -> None:
    path = tmp_path / "stereo.wav"
    soundfile.write(path, np.stack([tone(1.0), 0 * tone(1.0)], axis=1), 24000, subtype="FLOAT")

    np.testing.assert_allclose(read_recording(path).samples, tone(1.0, level=0.25), atol=1e-7)


@pytest.mark.parametrize("rate", SAMPLE_RATES)
def test_the_rates_of_recorders_are_taken(rate: int, tmp_path: Path) -> None:
    path = tmp_path / "prompt.wav"
    soundfile.write(path, tone(0.5, rate), rate)

    assert read_recording(path).seconds == 0.5


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        (tone(1.0, 8000), 8000, "sample rate: expected 16000, 22050, "),
        (tone(1.0, 44101), 44101, "176400 or 192000 Hz, got 44101 Hz"),
        (tone(0.4), 24000, "too short for a prompt: expected at least 0.5 s, got 0.40 s"),
        (tone(0.0), 24000, "too short for a prompt: expected at least 0.5 s, got 0.00 s"),
        (tone(30.001), 24000, "too long for a prompt: expected at most 30 s, got more"),
        (np.zeros((24000, 9), np.float32), 24000, "channels: expected at most 8, got 9"),
        (tone(1.0, level=1e-4), 24000, "silent: expected a peak of at least 0.001, got 0.0001"),
        (tone(1.0, level=32767.0), 24000, "samples: expected numbers from -1 to 1, got a peak of 32"),
        (np.full(24000, np.nan, np.float32), 24000, "samples: expected finite numbers, got nan"),
        (np.r_[tone(1.0), np.float32(np.inf)], 24000, "samples: expected finite numbers, got inf"),
    ],
)
def test_what_cannot_be_a_prompt_is_refused(samples: np.ndarray, rate: int, message: str, tmp_path: Path) -> None:
    path = tmp_path / "prompt.wav"
    soundfile.write(path, samples, rate, subtype="FLOAT")

    with pytest.raises(VoiceError) as refused:
        read_recording(path)

    assert str(refused.value).startswith(f"{path}: ")
    assert message in str(refused.value)


def test_exactly_thirty_seconds_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "prompt.wav"
    soundfile.write(path, tone(30.0), 24000)

    assert read_recording(path).seconds == 30.0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a recording that can be read (Format not recognised.)"),
        (b"hello, this is a text file", "not a recording that can be read (Format not recognised.)"),
        (b"RIFF\xff\xff\xff\xffWAVEfmt \x10", "not a recording that can be read ("),
        (None, "cannot be read (No such file or directory)"),
    ],
)
def test_what_is_no_recording_is_refused(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "prompt.wav"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(VoiceError) as refused:
        read_recording(path)

    assert str(refused.value).startswith(f"{path}: {message}")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VoiceError, match="Is a directory"):
        read_recording(tmp_path)

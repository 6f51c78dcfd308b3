"""`cosyvoice-worker make-voice` of hostile recordings: how it ends, and what it says."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.hostile import command

RATE = 24_000


def wav(data: bytes = b"", *, channels: int = 1, rate: int = RATE, bits: int = 16, claimed: int | None = None) -> bytes:
    """A wav file; `claimed` is how many bytes of samples its header tells of."""
    size = len(data) if claimed is None else claimed
    width = channels * bits // 8
    form = struct.pack("<HHIIHH", 1, channels, rate, rate * width & 0xFFFFFFFF, width & 0xFFFF, bits)
    head = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", size)
    return b"RIFF" + struct.pack("<I", size + 36 & 0xFFFFFFFF) + head + data


def flac(claimed: int) -> bytes:
    """A flac file of a tenth of a second whose header tells of `claimed` samples."""
    file = io.BytesIO()
    soundfile.write(file, np.full(RATE // 10, 0.3, np.float32), RATE, format="FLAC")
    content = bytearray(file.getvalue())
    # In the stream's information: 20 bits of rate, 3 of channels, 5 of bits, then 36 bits of samples.
    (rates,) = struct.unpack_from(">Q", content, 18)
    struct.pack_into(">Q", content, 18, rates >> 36 << 36 | claimed)
    return bytes(content)


SECOND = struct.pack("<h", 9000) * RATE
HOURS = 10 * 3600
RECORDINGS: dict[str, tuple[bytes, int, int, str]] = {
    # content, bytes of nothing behind it, exit code, what is said
    "10 hours": (wav(claimed=HOURS * RATE * 2), HOURS * RATE * 2, 64, "too long for a prompt: expected at most 30 s"),
    "10 hours in the header alone": (
        wav(SECOND[:1000], claimed=HOURS * RATE * 2),
        0,
        64,
        "too short for a prompt: expected at least 0.5 s, got 0.02 s",
    ),
    "1 byte": (b"R", 0, 65, "not a recording that can be read"),
    "nothing": (b"", 0, 65, "not a recording that can be read"),
    "9 channels": (wav(SECOND * 9, channels=9), 0, 64, "channels: expected at most 8, got 9"),
    "65535 channels": (wav(SECOND, channels=65535), 0, 65, "not a recording that can be read"),
    "no channel": (wav(SECOND, channels=0), 0, 65, "not a recording that can be read"),
    "4 GHz": (wav(SECOND, rate=2**32 - 1), 0, 65, "not a recording that can be read"),
    "a flac header of 2^36 samples": (flac(2**36 - 1), 0, 65, "not a recording that can be read"),
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_is_refused(name: str, folder: Path) -> None:
    content, nothing, code, words = RECORDINGS[name]
    recording = folder / "recording.wav"
    with recording.open("wb") as file:
        file.write(content)
        file.truncate(len(content) + nothing)

    ended = command.make_voice(recording, folder)

    assert ended.code == code, ended.said
    assert ended.said.startswith(f"{recording}: ")
    assert words in ended.said
    assert not (folder / "ann.safetensors").exists()

"""WAV by hand, read by a library."""

from __future__ import annotations

import io
import struct
import wave

import soundfile

from cosyvoice_worker.wav import HEADER_BYTES, wav_header

S16 = [0, 32767, -32767, 1, -1, 300]
BODY = struct.pack("<6h", *S16)


def test_a_whole_file_is_read_back() -> None:
    content = wav_header(24000, len(S16)) + BODY

    with wave.open(io.BytesIO(content)) as read:
        assert (read.getframerate(), read.getnchannels(), read.getsampwidth(), read.getnframes()) == (24000, 1, 2, 6)
    samples, rate = soundfile.read(io.BytesIO(content), dtype="int16")
    assert rate == 24000
    assert samples.tolist() == S16


def test_a_stream_says_that_its_length_is_not_known_and_is_read_to_its_end() -> None:
    header = wav_header(24000, None)
    assert len(header) == HEADER_BYTES
    assert struct.unpack_from("<I", header, 4)[0] == struct.unpack_from("<I", header, 40)[0] == 0xFFFFFFFF

    samples, rate = soundfile.read(io.BytesIO(header + BODY), dtype="int16")

    assert rate == 24000
    assert samples.tolist() == S16


def test_a_file_beyond_the_format_s_sizes_gets_a_stream_s_header() -> None:
    assert wav_header(24000, 2**31) == wav_header(24000, None)
    assert wav_header(24000, 2**31 - 19) != wav_header(24000, None)

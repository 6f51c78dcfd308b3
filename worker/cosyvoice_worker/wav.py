"""16-bit mono WAV without a library: the header of a whole file or of a stream.

Format: Microsoft's RIFF/WAVE with one `fmt ` chunk of PCM and one `data` chunk.
"""

from __future__ import annotations

import struct

SAMPLE_BYTES = 2
HEADER_BYTES = 44

_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
_PCM = 1
_MONO = 1
# What players take for "until the stream ends"; also the ceiling of the format's 32-bit sizes.
_UNKNOWN_SIZE = 0xFFFFFFFF


def wav_header(sample_rate: int, samples: int | None) -> bytes:
    """The 44 bytes before the samples. `samples` None, or more than the format can count, writes a stream's header."""
    data_bytes = _UNKNOWN_SIZE if samples is None else samples * SAMPLE_BYTES
    riff_bytes = data_bytes + HEADER_BYTES - 8
    if riff_bytes > _UNKNOWN_SIZE:
        data_bytes = riff_bytes = _UNKNOWN_SIZE
    return _HEADER.pack(
        b"RIFF",
        riff_bytes,
        b"WAVE",
        b"fmt ",
        16,
        _PCM,
        _MONO,
        sample_rate,
        sample_rate * SAMPLE_BYTES,
        SAMPLE_BYTES,
        8 * SAMPLE_BYTES,
        b"data",
        data_bytes,
    )

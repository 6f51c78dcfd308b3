"""A small good pack to begin from."""

from __future__ import annotations

import struct

import pytest

from cosyvoice_worker.voices.pack import Pack


@pytest.fixture
def ann() -> Pack:
    """Two tokens (80 ms)."""
    return Pack(
        family="cosyvoice2",
        prompt_text="Hello. 你好。",
        prompt_token=struct.pack("<2i", 0, 6560),
        prompt_mel=struct.pack("<320f", *(0.01 * i for i in range(320))),
        embedding=struct.pack("<192f", *(0.1 * i for i in range(192))),
        speech_tokenizer_sha256="a" * 64,
        campplus_sha256="b" * 64,
    )

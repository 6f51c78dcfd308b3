"""Which voice the warm-up uses, and a request that names none."""

from __future__ import annotations

import numpy as np
import pytest

from cosyvoice_worker.engine.choice import choose_voice
from cosyvoice_worker.voices import files
from cosyvoice_worker.voices.errors import UnknownVoiceError
from cosyvoice_worker.voices.pack import Pack
from cosyvoice_worker.voices.registry import VoiceRegistry
from cosyvoice_worker.voices.voice import built_in


@pytest.fixture
def packs(tmp_path) -> VoiceRegistry:
    """Two voices."""
    pack = Pack(
        family="cosyvoice2",
        prompt_text="",
        prompt_token=b"",
        prompt_mel=b"",
        embedding=np.ones(192, "<f4").tobytes(),
        speech_tokenizer_sha256="a" * 64,
        campplus_sha256="b" * 64,
    )
    for name in ("bert", "anna"):
        files.write(pack, tmp_path / f"{name}.safetensors")
    return VoiceRegistry([tmp_path])


@pytest.mark.parametrize(("wanted", "name"), [("bert", "bert"), (None, "anna")])
def test_the_voice_is_the_one_asked_for_or_the_first_pack(packs, wanted, name):
    assert choose_voice(wanted, packs).name == name


def test_without_packs_the_built_in_voice_speaks(tmp_path):
    assert choose_voice(None, VoiceRegistry([tmp_path])).name == built_in().name


def test_a_voice_that_is_not_there_is_told_with_those_that_are(packs):
    with pytest.raises(UnknownVoiceError, match="there is no voice 'carl'; there are: anna, bert"):
        choose_voice("carl", packs)

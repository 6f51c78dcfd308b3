"""The pack format: what is kept, and every reason to refuse one."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from safetensors.numpy import load, save

from cosyvoice_worker.voices import container, pack, voice
from cosyvoice_worker.voices.container import Container, Tensor
from cosyvoice_worker.voices.errors import VoiceError
from cosyvoice_worker.voices.pack import Pack

Change = Mapping[str, str | Tensor | None]  # metadata or tensor by name; None removes it

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def packs(draw: st.DrawFn) -> Pack:
    count = draw(st.integers(0, 12))
    tokens = draw(nps.arrays("<i4", count, elements=st.integers(0, 6560)))
    return Pack(
        family="cosyvoice2",
        prompt_text=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=50)) if count else "",
        prompt_token=tokens.tobytes(),
        prompt_mel=draw(nps.arrays("<f4", (2 * count, 80), elements=FLOATS)).tobytes(),
        embedding=draw(nps.arrays("<f4", 192, elements=FLOATS)).tobytes(),
        speech_tokenizer_sha256=draw(st.text("0123456789abcdef", min_size=64, max_size=64)),
        campplus_sha256="c" * 64,
    )


@given(packs())
def test_every_pack_survives_its_file(original: Pack) -> None:
    assert pack.decode(pack.encode(original), "f") == original


@given(packs())
def test_the_engine_gets_the_arrays_that_were_packed(original: Pack) -> None:
    arrays = voice.from_pack("ann", original)

    assert arrays.prompt_token.shape == (original.tokens,)
    assert arrays.prompt_mel.shape == (2 * original.tokens, 80)
    assert arrays.embedding.shape == (192,)
    assert arrays.prompt_token.astype("<i4").tobytes() == original.prompt_token
    assert arrays.prompt_mel.astype("<f4").tobytes() == original.prompt_mel
    assert arrays.embedding.astype("<f4").tobytes() == original.embedding


def test_equal_packs_are_equal_files(ann: Pack) -> None:
    assert pack.encode(ann) == pack.encode(replace(ann))


def test_other_tools_read_a_pack(ann: Pack) -> None:
    arrays = load(pack.encode(ann))

    assert {name: (str(array.dtype), array.shape) for name, array in arrays.items()} == {
        "prompt_token": ("int32", (2,)),
        "prompt_mel": ("float32", (4, 80)),
        "embedding": ("float32", (192,)),
    }


def test_a_pack_of_other_tools_is_read(ann: Pack) -> None:
    parsed = container.decode(pack.encode(ann), "f")

    written = save(load(pack.encode(ann)), dict(parsed.metadata))

    assert pack.decode(written, "f") == ann


def test_the_built_in_voice_is_an_empty_pack(ann: Pack) -> None:
    empty = replace(ann, prompt_text="", prompt_token=b"", prompt_mel=b"", embedding=bytes(4 * 192))

    built_in, read = voice.built_in(), voice.from_pack("x", pack.decode(pack.encode(empty), "f"))

    assert built_in.prompt_mel.shape == read.prompt_mel.shape == (0, 80)
    assert built_in.prompt_token.dtype == read.prompt_token.dtype
    assert np.array_equal(built_in.embedding, read.embedding)


def test_thirty_seconds_fit(ann: Pack) -> None:
    longest = replace(ann, prompt_text="字" * 1000, prompt_token=bytes(4 * 750), prompt_mel=bytes(4 * 1500 * 80))

    assert pack.decode(pack.encode(longest), "f").seconds == 30.0


def changed(content: bytes, change: Change) -> bytes:
    parsed = container.decode(content, "f")
    metadata, tensors = dict(parsed.metadata), dict(parsed.tensors)
    for name, value in change.items():
        if isinstance(value, Tensor):
            tensors[name] = value
        elif isinstance(value, str):
            metadata[name] = value
        else:
            metadata.pop(name, None)
            tensors.pop(name, None)
    return container.encode(Container(metadata, tensors))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "voice/2"}, "f: metadata format: expected cosyvoice-voice/1, got 'voice/2'"),
        ({"format": None}, "f: metadata format: expected cosyvoice-voice/1, got None"),
        ({"family": "cosyvoice3"}, "f: metadata family: expected cosyvoice2, got 'cosyvoice3'"),
        ({"prompt_text": None}, "f: metadata prompt_text: expected a text, which may be empty, got none"),
        ({"prompt_text": "a" * 1001}, "f: prompt_text: expected at most 1000 characters, got 1001"),
        ({"prompt_text": "\ud800"}, r"f: prompt_text: expected UTF-8, got '\ud800'"),
        (
            {"campplus_sha256": "B" * 64},
            f"f: metadata campplus_sha256: expected 64 lower-case hexadecimal digits, got '{'B' * 64}'",
        ),
        (
            {"speech_tokenizer_sha256": None},
            "f: metadata speech_tokenizer_sha256: expected 64 lower-case hexadecimal digits, got None",
        ),
        (
            {"embedding": None},
            "f: tensors: expected embedding, prompt_mel, prompt_token, got ['prompt_mel', 'prompt_token']",
        ),
        (
            {"more": Tensor("F32", (), b"1234")},
            "f: tensors: expected embedding, prompt_mel, prompt_token, got "
            "['embedding', 'more', 'prompt_mel', 'prompt_token']",
        ),
        ({"prompt_token": Tensor("I64", (2,), bytes(16))}, "f: prompt_token: dtype: expected I32, got 'I64'"),
        ({"prompt_token": Tensor("I32", (2, 1), bytes(8))}, "f: prompt_token: shape: expected (N,), got (2, 1)"),
        ({"prompt_token": Tensor("I32", (3,), bytes(12))}, "f: prompt_mel: shape: expected (6, 80), got (4, 80)"),
        ({"prompt_token": Tensor("I32", (2,), bytes(7))}, "f: prompt_token: size: expected 8 bytes, got 7"),
        (
            {"prompt_token": Tensor("I32", (2**62,), bytes(8))},
            "f: prompt_token: too long: expected at most 750 tokens, got 4611686018427387904",
        ),
        (
            {"prompt_token": Tensor("I32", (2,), struct.pack("<2i", 5, 6561))},
            "f: prompt_token[1]: id out of range: expected 0 to 6560, got 6561",
        ),
        (
            {"prompt_token": Tensor("I32", (2,), struct.pack("<2i", -1, 0))},
            "f: prompt_token[0]: id out of range: expected 0 to 6560, got -1",
        ),
        ({"prompt_mel": Tensor("F16", (4, 80), bytes(640))}, "f: prompt_mel: dtype: expected F32, got 'F16'"),
        ({"prompt_mel": Tensor("F32", (80, 4), bytes(1280))}, "f: prompt_mel: shape: expected (4, 80), got (80, 4)"),
        (
            {"prompt_mel": Tensor("F32", (4, 80), struct.pack("<320f", *[0.0] * 319, float("nan")))},
            "f: prompt_mel[319]: not finite: expected a number, got nan",
        ),
        (
            {"embedding": Tensor("F32", (192,), struct.pack("<192f", float("inf"), float("-inf"), *[0.0] * 190))},
            "f: embedding[0]: not finite: expected a number, got inf",
        ),
        ({"embedding": Tensor("F32", (1, 192), bytes(768))}, "f: embedding: shape: expected (192,), got (1, 192)"),
        (
            {"prompt_token": Tensor("I32", (0,), b""), "prompt_mel": Tensor("F32", (0, 80), b"")},
            "f: metadata prompt_text: expected an empty one, as there are no prompt tokens, got 'Hello. 你好。'",
        ),
    ],
)
def test_a_pack_that_breaks_a_rule_is_refused(ann: Pack, change: Change, message: str) -> None:
    content = pack.encode(ann)

    with pytest.raises(VoiceError) as refused:
        pack.decode(changed(content, change), "f")

    assert str(refused.value) == message
    assert refused.value.outcome.exit_code == 65


def test_nothing_is_written_that_could_not_be_read(ann: Pack) -> None:
    with pytest.raises(VoiceError, match=r"prompt_mel: shape: expected \(4, 80\), got \(3, 80\)"):
        pack.encode(replace(ann, prompt_mel=ann.prompt_mel[:-320]))

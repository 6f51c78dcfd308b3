"""Small safetensors files, read strictly."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from cosyvoice_worker.voices import container
from cosyvoice_worker.voices.container import Container, Tensor
from cosyvoice_worker.voices.errors import VoiceError

TWO = Container({"a": "b"}, {"x": Tensor("F32", (2,), b"12345678"), "y": Tensor("I32", (1, 1), b"abcd")})


def file_of(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(begin: object, end: object, dtype: object = "F32", shape: object = ()) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_what_was_written_is_read() -> None:
    assert container.decode(container.encode(TWO), "f") == TWO


def test_the_format_s_own_library_reads_what_was_written() -> None:
    tensors = load(container.encode(TWO))

    assert {name: (str(array.dtype), array.shape, array.tobytes()) for name, array in tensors.items()} == {
        "x": ("float32", (2,), b"12345678"),
        "y": ("int32", (1, 1), b"abcd"),
    }


def test_what_the_format_s_own_library_wrote_is_read() -> None:
    written = save({"x": np.array([0.0], np.float32)}, {"a": "b"})

    assert container.decode(written, "f") == Container({"a": "b"}, {"x": Tensor("F32", (1,), bytes(4))})


def test_metadata_may_be_absent() -> None:
    assert container.decode(file_of({"x": entry(0, 4)}, b"1234"), "f").metadata == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "f: too short for a safetensors file: expected 8 bytes or more, got 0"),
        (b"\xff" * 16, "f: not a voice pack: expected a header of at most 65536 bytes, got 18446744073709551615"),
        (b"PK\x03\x04" + bytes(60), "f: not a voice pack: expected a header of at most 65536 bytes, got 67324752"),
        ((100).to_bytes(8, "little") + b"{}", "f: truncated header: expected 100 bytes, got 2"),
        (file_of(b"{"), "f: header: expected JSON, got JSONDecodeError Expecting property name"),
        (file_of(b"\xff{}"), "f: header: expected JSON, got UnicodeDecodeError"),
        (file_of(b"[" * 60000), "f: header: expected JSON, got RecursionError"),
        (file_of(b"9" * 60000), "f: header: expected JSON, got ValueError"),
        (file_of(b'{"x":1,"x":2}'), "f: header: expected JSON, got ValueError a key stands twice in one object"),
        (file_of([1]), "f: header: expected a JSON object, got [1]"),
        (file_of({"__metadata__": {"a": 1}}), "f: __metadata__: header: expected an object of strings, got {'a': 1}"),
        (file_of({"__metadata__": "a"}), "f: __metadata__: header: expected an object of strings, got 'a'"),
        (file_of({"x": 1}), "f: x: header entry: expected dtype, shape and data_offsets of whole numbers, got 1"),
        (file_of({"x": entry(0, True)}), "f: x: header entry: expected"),
        (file_of({"x": entry(4, 0)}, b"1234"), "f: x: header entry: expected"),
        (file_of({"x": entry(-4, 0)}), "f: x: header entry: expected"),
        (file_of({"x": entry(0, 4.0)}, b"1234"), "f: x: header entry: expected"),
        (file_of({"x": entry(0, 4, shape=[-1])}, b"1234"), "f: x: header entry: expected"),
        (file_of({"x": entry(0, 4, dtype=3)}, b"1234"), "f: x: header entry: expected"),
        (file_of({"x": {**entry(0, 4), "more": 1}}, b"1234"), "f: x: header entry: expected"),
        (file_of({"x": entry(4, 8)}, bytes(8)), "f: x: data_offsets: expected to begin at 0, got 4"),
        (
            file_of({"x": entry(0, 4), "y": entry(2, 6)}, bytes(6)),
            "f: y: data_offsets: expected to begin at 4, got 2",
        ),
        (file_of({"x": entry(0, 8)}, b"1234"), "f: x: truncated: expected 8 bytes of data, got 4"),
        (file_of({"x": entry(0, 2**70)}, b"1234"), "f: x: truncated: expected"),
        (file_of({"x": entry(0, 4)}, b"12345"), "f: bytes after the last tensor: expected 4, got 5"),
    ],
)
def test_a_malformed_file_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(VoiceError) as refused:
        container.decode(content, "f")

    assert str(refused.value).startswith(message)


@given(st.binary(max_size=200) | st.binary(max_size=100).map(file_of))
def test_no_bytes_do_anything_but_be_read_or_refused(content: bytes) -> None:
    try:
        read = container.decode(content, "f")
    except VoiceError:
        return
    assert container.decode(container.encode(read), "f") == read


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.text(max_size=20), max_size=3),
    st.lists(st.binary(max_size=32), max_size=4),
)
def test_every_container_survives(metadata: dict[str, str], blobs: list[bytes]) -> None:
    original = Container(metadata, {f"t{i}": Tensor("U8", (len(blob),), blob) for i, blob in enumerate(blobs)})

    assert container.decode(container.encode(original), "f") == original

"""A strict reader and a deterministic writer of small safetensors files, without numpy.

Format (https://github.com/huggingface/safetensors): 8 bytes little-endian header length, a JSON object
{name: {dtype, shape, data_offsets}} with an optional `__metadata__` of strings, then the tensors' bytes without gaps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from cosyvoice_worker.voices.errors import refuse
from cosyvoice_worker.voices.limits import MAX_HEADER_BYTES

LENGTH_BYTES = 8
METADATA = "__metadata__"
_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor as stored: `dtype` in the format's spelling ("F32", "I32"), `data` little-endian, row-major."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Container:
    """A whole file."""

    metadata: Mapping[str, str]
    tensors: Mapping[str, Tensor]


def decode(content: bytes, file: str) -> Container:
    """The file's metadata and tensors. Raises VoiceError for anything but a well-formed file without gaps or overlaps.

    Sizes are not checked against dtype and shape here: that is left to the reader that knows which ones it wants.
    """
    header_bytes = _header_length(content, file)
    header = _parse_header(content[LENGTH_BYTES : LENGTH_BYTES + header_bytes], file)
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise refuse("header", file=file, tensor=METADATA, expected="an object of strings", actual=shown(metadata))
    body = memoryview(content)[LENGTH_BYTES + header_bytes :]
    tensors: dict[str, Tensor] = {}
    end_of_last = 0
    for name, (dtype, shape, begin, end) in _entries_in_file_order(header, file):
        if begin != end_of_last:
            raise refuse("data_offsets", file=file, tensor=name, expected=f"to begin at {end_of_last}", actual=begin)
        if end > len(body):
            raise refuse("truncated", file=file, tensor=name, expected=f"{end} bytes of data", actual=len(body))
        tensors[name] = Tensor(dtype, shape, bytes(body[begin:end]))
        end_of_last = end
    if end_of_last != len(body):
        raise refuse("bytes after the last tensor", file=file, expected=end_of_last, actual=len(body))
    return Container(metadata, tensors)


def encode(container: Container) -> bytes:
    """The file's bytes: the same for equal containers, tensors in the order given, data aligned to 8 bytes."""
    header: dict[str, object] = {METADATA: dict(container.metadata)}
    offset = 0
    for name, tensor in container.tensors.items():
        end = offset + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text + b"".join(t.data for t in container.tensors.values())


def _header_length(content: bytes, file: str) -> int:
    if len(content) < LENGTH_BYTES:
        raise refuse("too short for a safetensors file", file=file, expected="8 bytes or more", actual=len(content))
    length = int.from_bytes(content[:LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        limit = f"a header of at most {MAX_HEADER_BYTES} bytes"
        raise refuse("not a voice pack", file=file, expected=limit, actual=length)
    if length > len(content) - LENGTH_BYTES:
        available = len(content) - LENGTH_BYTES
        raise refuse("truncated header", file=file, expected=f"{length} bytes", actual=available)
    return length


def _parse_header(text: bytes, file: str) -> dict[str, object]:
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise refuse("header", file=file, expected="JSON", actual=f"{type(error).__name__} {error}") from error
    if not isinstance(header, dict):
        raise refuse("header", file=file, expected="a JSON object", actual=shown(header))
    return header


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return table


def _entries_in_file_order(
    header: Mapping[str, object], file: str
) -> list[tuple[str, tuple[str, tuple[int, ...], int, int]]]:
    entries = [(name, _entry(name, fields, file)) for name, fields in header.items()]
    return sorted(entries, key=lambda item: (item[1][2], item[1][3]))


def _entry(name: str, fields: object, file: str) -> tuple[str, tuple[int, ...], int, int]:
    if isinstance(fields, dict) and len(fields) == 3:
        match fields:
            case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [begin, end]}:
                # bool is an int to isinstance, but not to the format.
                if all(type(number) is int and number >= 0 for number in (*shape, begin, end)) and begin <= end:
                    return dtype, tuple(shape), begin, end
    expected = "dtype, shape and data_offsets of whole numbers"
    raise refuse("header entry", file=file, tensor=name, expected=expected, actual=shown(fields))


def shown(value: object) -> str:
    """A foreign value, cut to what an error message can hold."""
    return repr(value)[:80]

"""The rules that a voice pack must keep; each raises a VoiceError that names the file, the tensor and the value."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping

from cosyvoice_worker.outcome import Reason
from cosyvoice_worker.voices import limits
from cosyvoice_worker.voices.container import Tensor, shown
from cosyvoice_worker.voices.errors import refuse

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
DIGESTS = ("speech_tokenizer_sha256", "campplus_sha256")


def check_name(name: str, file: str | None = None) -> str:
    """`name` if it can be a voice's name."""
    if not _NAME.fullmatch(name):
        expected = "1 to 63 of a-z, 0-9 and -, not beginning with -"
        raise refuse("voice name", file=file, expected=expected, actual=shown(name), reason=Reason.INVALID_CONFIG)
    return name


def check_prompt_text(text: str, file: str | None = None) -> str:
    """`text` if it can be a pack's prompt_text: bounded, Unicode without lone surrogates. `file` None: an option."""
    reason = Reason.INVALID_CONFIG if file is None else Reason.CORRUPT_FILE
    if len(text) > limits.MAX_PROMPT_TEXT:
        expected = f"at most {limits.MAX_PROMPT_TEXT} characters"
        raise refuse("prompt_text", file=file, expected=expected, actual=len(text), reason=reason)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise refuse("prompt_text", file=file, expected="UTF-8", actual=shown(text), reason=reason) from error
    return text


def check_metadata(metadata: Mapping[str, str], tokens: int, file: str) -> None:
    """Every key that a pack of `tokens` prompt tokens must have."""
    for key, allowed in (("format", (limits.FORMAT,)), ("family", limits.FAMILIES)):
        if metadata.get(key) not in allowed:
            expected = " or ".join(allowed)
            raise refuse(f"metadata {key}", file=file, expected=expected, actual=shown(metadata.get(key)))
    for key in DIGESTS:
        if not _SHA256.fullmatch(metadata.get(key, "")):
            expected = "64 lower-case hexadecimal digits"
            raise refuse(f"metadata {key}", file=file, expected=expected, actual=shown(metadata.get(key)))
    if "prompt_text" not in metadata:
        raise refuse("metadata prompt_text", file=file, expected="a text, which may be empty", actual="none")
    text = check_prompt_text(metadata["prompt_text"], file)
    if text and not tokens:
        expected = "an empty one, as there are no prompt tokens"
        raise refuse("metadata prompt_text", file=file, expected=expected, actual=shown(text))


def check_layout(tensor: Tensor, name: str, dtype: str, shape: tuple[int, ...], file: str) -> None:
    """`tensor` has this dtype, this shape and the bytes that they need."""
    if tensor.dtype != dtype:
        raise refuse("dtype", file=file, tensor=name, expected=dtype, actual=shown(tensor.dtype))
    if tensor.shape != shape:
        raise refuse("shape", file=file, tensor=name, expected=shape, actual=shown(tensor.shape))
    size = limits.ITEM_BYTES * math.prod(shape)
    if len(tensor.data) != size:
        raise refuse("size", file=file, tensor=name, expected=f"{size} bytes", actual=len(tensor.data))


def check_ids(data: bytes, name: str, file: str) -> None:
    """Every int32 is a speech token's id."""
    for index, (value,) in enumerate(struct.iter_unpack("<i", data)):
        if not 0 <= value < limits.SPEECH_TOKEN_IDS:
            expected = f"0 to {limits.SPEECH_TOKEN_IDS - 1}"
            raise refuse("id out of range", file=file, tensor=f"{name}[{index}]", expected=expected, actual=value)


def check_finite(data: bytes, name: str, file: str) -> None:
    """Every float32 is a finite number."""
    values = struct.unpack(f"<{len(data) // limits.ITEM_BYTES}f", data)
    # The sum of so few float32 values cannot overflow a double, and a single inf or NaN shows in it.
    if not math.isfinite(sum(values)):
        index = next(i for i, value in enumerate(values) if not math.isfinite(value))
        raise refuse("not finite", file=file, tensor=f"{name}[{index}]", expected="a number", actual=values[index])

"""The channel between the front (no torch) and the engine process: msgpack messages behind a 4-byte length.

The front creates a `socketpair` and hands one end to the engine by file descriptor: there is no path to guess, and the
death of either side is an end of file on the other at once. Frames are limited, so a broken peer cannot make the other
allocate without bound.
"""

from __future__ import annotations

import struct
from typing import TypeVar

import msgspec

LENGTH = struct.Struct(">I")
MAX_FRAME_BYTES = 8 * 1024 * 1024


class Message(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True):
    """Base of every message; `type` on the wire is the lower-case class name."""


# ----- engine -> front ------------------------------------------------------------------------------------------------


class Hello(Message, frozen=True, tag="hello"):
    """First message of an engine process: it runs, and torch is about to be imported."""

    pid: int


class PhaseChanged(Message, frozen=True, tag="phase"):
    """Loading entered `name` ("Import", "Map", "Build", "WarmUp"); `seconds` is how long the phase before it took."""

    name: str
    seconds: float = 0.0


class Ready(Message, frozen=True, tag="ready"):
    """Warmed up. `slowest_step` (seconds) is the longest wait between two beats of the warm-up."""

    sample_rate: int
    device: str
    dtype: str
    load: dict[str, float]
    voices: list[str]
    slowest_step: float = 0.0


class Audio(Message, frozen=True, tag="audio"):
    """One piece of a request's audio: signed 16-bit little-endian mono samples, already clipped."""

    id: int
    seq: int
    s16: bytes


class Done(Message, frozen=True, tag="done"):
    """A request's end. Number and sha256 (over int32 little-endian ids) of its speech tokens identify its content."""

    id: int
    speech_tokens: int
    speech_tokens_sha256: str
    seconds: float
    cancelled: bool = False


class Failed(Message, frozen=True, tag="error"):
    """A request (`id` > 0) or the engine itself (`id` 0) failed. The rest is an outcome's."""

    id: int
    reason: str
    message: str
    phase: str = "Serve"
    file: str | None = None
    tensor: str | None = None
    expected: str | None = None
    actual: str | None = None
    status: int = 500


class Beat(Message, frozen=True, tag="beat"):
    """A sign of progress: `step` grows with every LM token, layer and chunk of request `id` (0 while loading)."""

    id: int
    step: int


EngineMessage = Hello | PhaseChanged | Ready | Audio | Done | Failed | Beat


# ----- front -> engine ------------------------------------------------------------------------------------------------


class Synthesize(Message, frozen=True, tag="synthesize"):
    """One request. `voice` None means the model's default voice. `deadline_seconds` counts from the receipt."""

    id: int
    text: str
    voice: str | None
    stream: bool
    seed: int
    speed: float = 1.0
    instructions: str | None = None
    deadline_seconds: float | None = None


class Cancel(Message, frozen=True, tag="cancel"):
    """Stop working on request `id`; the engine answers with Done(cancelled=True)."""

    id: int


class Shutdown(Message, frozen=True, tag="shutdown"):
    """Finish nothing more and exit with 0."""


class Bound(Message, frozen=True, tag="bound"):
    """From now on the engine may take `growth` more bytes of memory; None: all that is left, as the only engine."""

    growth: int | None = None


FrontMessage = Synthesize | Cancel | Shutdown | Bound

_Message = TypeVar("_Message")

_encoder = msgspec.msgpack.Encoder()
_engine_decoder = msgspec.msgpack.Decoder(EngineMessage)
_front_decoder = msgspec.msgpack.Decoder(FrontMessage)


def encode(message: EngineMessage | FrontMessage) -> bytes:
    """A whole frame: length and body."""
    body = _encoder.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise ValueError(
            f"message {type(message).__name__} of {len(body)} bytes is over the limit of {MAX_FRAME_BYTES}"
        )
    return LENGTH.pack(len(body)) + body


def decode_engine(body: bytes) -> EngineMessage:
    """A message of the engine; raises msgspec.MsgspecError for anything else."""
    return _decode(_engine_decoder, body)


def decode_front(body: bytes) -> FrontMessage:
    """A message of the front; raises msgspec.MsgspecError for anything else."""
    return _decode(_front_decoder, body)


def _decode(decoder: msgspec.msgpack.Decoder[_Message], body: bytes) -> _Message:
    try:
        return decoder.decode(body)
    except RecursionError as error:
        raise msgspec.DecodeError("nested too deeply") from error

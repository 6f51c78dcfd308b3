"""The frames between front and engine."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_worker import channel
from cosyvoice_worker.channel import Audio, Beat, Cancel, Done, Failed, Hello, PhaseChanged, Ready, Shutdown, Synthesize

ENGINE_MESSAGES = [
    Hello(pid=7),
    PhaseChanged(name="Map", seconds=1.5),
    Ready(sample_rate=24000, device="cpu", dtype="float32", load={"map": 0.1}, voices=["a"], slowest_step=0.2),
    Audio(id=1, seq=0, s16=b"\x00\x01"),
    Done(id=1, speech_tokens=3, speech_tokens_sha256="ab", seconds=0.5),
    Failed(id=1, reason="WarmUpFailed", message="no"),
    Beat(id=1, step=9),
]
FRONT_MESSAGES = [
    Synthesize(id=1, text="Hello.", voice=None, stream=False, seed=0),
    Cancel(id=1),
    Shutdown(),
]


@pytest.mark.parametrize("message", ENGINE_MESSAGES, ids=lambda m: type(m).__name__)
def test_an_engine_message_survives_the_wire(message: channel.EngineMessage) -> None:
    frame = channel.encode(message)
    (length,) = channel.LENGTH.unpack(frame[:4])
    assert length == len(frame) - 4
    assert channel.decode_engine(frame[4:]) == message


@pytest.mark.parametrize("message", FRONT_MESSAGES, ids=lambda m: type(m).__name__)
def test_a_front_message_survives_the_wire(message: channel.FrontMessage) -> None:
    assert channel.decode_front(channel.encode(message)[4:]) == message


@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused_or_decoded_but_never_anything_else(body: bytes) -> None:
    for decode in (channel.decode_engine, channel.decode_front):
        try:
            message = decode(body)
        except msgspec.MsgspecError:
            continue
        assert isinstance(message, channel.Message)


def test_a_message_over_the_limit_is_not_sent() -> None:
    with pytest.raises(ValueError, match="over the limit of 8388608"):
        channel.encode(Audio(id=1, seq=0, s16=bytes(channel.MAX_FRAME_BYTES)))


@pytest.mark.parametrize("levels", [1_000, 100_000])
def test_a_message_that_is_nested_without_end_is_refused_as_any_other(levels: int) -> None:
    body = b"\x82\xa4type\xa5ready\xa1x" + b"\x91" * levels + b"\xc0"

    with pytest.raises(msgspec.DecodeError, match="nested too deeply"):
        channel.decode_engine(body)

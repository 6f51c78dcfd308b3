"""What a speech request may hold, and the exact words for what it may not."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.server.problems import Problem
from cosyvoice_worker.server.speech_request import SpeechRequest, parse_speech

LIMITS = Limits()


def refusal(body: bytes) -> Problem:
    with pytest.raises(Problem) as caught:
        parse_speech(body, LIMITS)
    return caught.value


def body(**fields: Any) -> bytes:
    return json.dumps({"input": "Hello.", **fields}).encode()


def test_only_input_is_needed() -> None:
    assert parse_speech(b'{"input": "Hello."}', LIMITS) == SpeechRequest(input="Hello.")


def test_every_field_is_taken() -> None:
    fields: dict[str, Any] = {
        "input": "你好",
        "model": "narrator",
        "voice": "anna",
        "response_format": "pcm",
        "speed": 1.5,
        "instructions": "Whisper.",
        "seed": 7,
        "stream": False,
        "stream_format": "audio",
    }

    assert parse_speech(json.dumps(fields).encode(), LIMITS) == SpeechRequest(**fields)


@pytest.mark.parametrize("text", ["a", "1", "你", "…ß…", "x" * 5000])
def test_text_with_a_letter_or_digit_is_spoken(text: str) -> None:
    assert parse_speech(body(input=text), LIMITS).input == text


UNKNOWN = (
    "colour: unknown field (known: input, model, voice, response_format, speed, instructions, seed, stream, "
    "stream_format)"
)
REFUSALS: dict[str, tuple[bytes, int, str, str]] = {
    "empty text": (body(input=""), 400, "text-empty", "input is empty: there is nothing to speak"),
    "blank text": (body(input=" \n\t"), 400, "text-empty", "input is empty: there is nothing to speak"),
    "only punctuation": (
        body(input="…!? 。、—"),
        400,
        "nothing-to-speak",
        "input has no letter or digit: there is nothing to speak",
    ),
    "text too long": (
        body(input="a" * 100_000),
        413,
        "text-too-long",
        "input has 100,000 characters, over the limit of 5,000",
    ),
    "instructions too long": (
        body(instructions="a" * 1001),
        413,
        "text-too-long",
        "instructions has 1,001 characters, over the limit of 1,000",
    ),
    "unsupported format": (
        body(response_format="mp3"),
        400,
        "unsupported-format",
        "response_format 'mp3' is not supported; supported are: wav, pcm",
    ),
    "speed with stream": (
        body(speed=1.25, stream=True),
        400,
        "speed-with-stream",
        "speed 1.25 cannot be streamed: leave speed at 1 or set stream to false",
    ),
    "not UTF-8": (
        b'{"input": "\xff"}',
        400,
        "not-utf-8",
        "the body is not UTF-8: wrong byte at position 11",
    ),
    "half a surrogate pair": (
        b'{"input": "a\\ud800 and more"}',
        400,
        "invalid-json",
        "the body is not JSON: JSON is malformed: unexpected end of escaped utf-16 surrogate pair (byte 18)",
    ),
    "no body": (b"", 400, "invalid-json", "the body is not JSON: Input data was truncated"),
    "not JSON": (
        b"input=hello",
        400,
        "invalid-json",
        "the body is not JSON: JSON is malformed: invalid character (byte 0)",
    ),
    "nested too deeply": (b"[" * 100_000, 400, "invalid-json", "the body is not JSON: nested too deeply"),
    "not an object": (b"[]", 400, "invalid-request", "the document: expected an object, got an array"),
    "no input": (b"{}", 400, "invalid-request", "input: missing"),
    "unknown field": (body(colour="red"), 400, "invalid-request", UNKNOWN),
    "wrong types, all told": (
        body(speed="fast", seed=-1, stream=1),
        400,
        "invalid-request",
        "speed: expected `float`, got `str`; seed: expected `int` >= 0; stream: expected `bool`, got `int`",
    ),
    "speed out of range": (body(speed=9), 400, "invalid-request", "speed: expected `float` <= 4.0"),
    "events": (body(stream_format="sse"), 400, "invalid-request", "stream_format: invalid enum value 'sse'"),
}


@pytest.mark.parametrize(("sent", "status", "kind", "detail"), REFUSALS.values(), ids=REFUSALS)
def test_a_bad_request_is_refused_in_exact_words(sent: bytes, status: int, kind: str, detail: str) -> None:
    problem = refusal(sent)

    assert (problem.status, problem.kind, problem.detail) == (status, kind, detail)


def test_a_problem_has_the_members_of_rfc_9457_and_its_own() -> None:
    problem = refusal(body(response_format="mp3"))

    assert problem.document("/v1/audio/speech", "r-1") == {
        "type": "https://cosyvoice.dev/problems/unsupported-format",
        "title": "Unsupported format",
        "status": 400,
        "detail": "response_format 'mp3' is not supported; supported are: wav, pcm",
        "instance": "/v1/audio/speech",
        "requestId": "r-1",
        "field": "response_format",
        "supported": ["wav", "pcm"],
    }


@given(st.binary(max_size=300))
def test_foreign_bytes_are_a_problem_and_nothing_else(sent: bytes) -> None:
    with pytest.raises(Problem):
        parse_speech(sent, LIMITS)


VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)


@given(st.fixed_dictionaries({"input": VALUES}, optional=dict.fromkeys(["voice", "speed", "seed", "stream"], VALUES)))
def test_any_document_is_a_request_of_its_values_or_a_problem(document: dict[str, Any]) -> None:
    with contextlib.suppress(Problem):
        request = parse_speech(json.dumps(document).encode(), LIMITS)

        assert {name: getattr(request, name) for name in document} == document


def test_an_answer_to_strange_fields_is_no_longer_than_a_page() -> None:
    strange = {"x" * 100_000: 1} | {f"field{number}": 1 for number in range(50_000)}

    detail = refusal(body(**strange)).detail

    assert detail.startswith("x" * 63 + "…: unknown field (known: input, ")
    assert detail.endswith("; the document: 49,993 further unknown fields")
    assert len(detail) < 2000

"""`POST /v1/audio/speech`: what its body may hold, and every reason to refuse one that needs no look at the model."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cosyvoice_worker.server import problems
from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.strict import problems_of

FORMATS = ("wav", "pcm")
MAX_SEED = 2**63 - 1

_DEFAULTS = Limits()


class SpeechRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a speech request: OpenAI's fields and `seed`, `stream`."""

    input: Annotated[
        str,
        Meta(
            description="The text to speak; it needs at least one letter or digit.",
            extra_json_schema={"minLength": 1, "maxLength": _DEFAULTS.text_characters},
        ),
    ]
    model: Annotated[str, Meta(description="Not looked at: a worker serves one model.")] | None = None
    voice: Annotated[str, Meta(description="One of /v1/audio/voices; without it the model's default voice.")] | None = (
        None
    )
    response_format: Annotated[
        str,
        Meta(description="wav, or the bare samples (pcm).", extra_json_schema={"enum": list(FORMATS)}),
    ] = "wav"
    speed: Annotated[float, Meta(ge=0.25, le=4.0, description="1 is the model's own; only without stream.")] = 1.0
    instructions: (
        Annotated[
            str,
            Meta(description="How to speak.", extra_json_schema={"maxLength": _DEFAULTS.instructions_characters}),
        ]
        | None
    ) = None
    seed: (
        Annotated[int, Meta(ge=0, le=MAX_SEED, description="Same seed, same speech. Drawn and told when left out.")]
        | None
    ) = None
    stream: Annotated[bool, Meta(description="Send audio while it is being made.")] = False
    stream_format: Annotated[
        Literal["audio"], Meta(description="The bytes of the audio; there are no server-sent events.")
    ] = "audio"


def parse_speech(body: bytes, limits: Limits) -> SpeechRequest:
    """The request in `body`. Raises Problem; what is wrong with the shape of fields is told all at once."""
    request = _decode(body)
    if not request.input.strip():
        raise problems.text_empty()
    _check_length("input", request.input, limits.text_characters)
    _check_length("instructions", request.instructions or "", limits.instructions_characters)
    if not any(character.isalnum() for character in request.input):
        raise problems.nothing_to_speak()
    if request.response_format not in FORMATS:
        raise problems.unsupported_format(request.response_format, FORMATS)
    if request.stream and request.speed != 1.0:
        raise problems.speed_with_stream(request.speed)
    return request


def _decode(body: bytes) -> SpeechRequest:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise problems.not_utf8(error.start) from error
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise problems.invalid_json(str(error)) from error
    except RecursionError as error:
        raise problems.invalid_json("nested too deeply") from error
    if errors := problems_of(document, SpeechRequest):
        raise problems.invalid_request(errors)
    return msgspec.convert(document, SpeechRequest)


def _check_length(field: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise problems.text_too_long(field, len(text), limit)

"""The API's description, OpenAPI 3.1: paths by hand, the request's schema from the type that parses it."""

from __future__ import annotations

import functools

import msgspec

from cosyvoice_worker._version import __version__
from cosyvoice_worker.names import (
    HEADER_REQUEST_ID,
    HEADER_SAMPLE_RATE,
    HEADER_SEED,
    HEADER_SPEECH_TOKENS,
    HEADER_SPEECH_TOKENS_SHA256,
)
from cosyvoice_worker.server.problems import CONTENT_TYPE
from cosyvoice_worker.server.speech_request import SpeechRequest

_API_KEY = "apiKey"
_API_KEY_WORDS = "Where the worker takes API keys (spec.access.apiKeysSecret), one of them; elsewhere nothing."
# With a key or, where none is asked for, without.
_SECURITY: list[dict[str, list[str]]] = [{_API_KEY: []}, {}]
_REF = "#/components/schemas/{name}"
_STRING: dict[str, object] = {"type": "string"}
_INTEGER: dict[str, object] = {"type": "integer"}

_AUDIO = {"schema": {"type": "string", "contentMediaType": "audio/wav", "contentEncoding": "binary"}}
_PCM = {
    "schema": {
        "type": "string",
        "contentEncoding": "binary",
        "description": f"Signed 16-bit little-endian mono samples at the rate of {HEADER_SAMPLE_RATE}.",
    }
}
_SPEECH_HEADERS = {
    HEADER_SAMPLE_RATE: ("Samples a second.", _INTEGER),
    HEADER_SEED: ("The seed that gives this speech again.", _INTEGER),
    HEADER_SPEECH_TOKENS: ("How many speech tokens the audio was made of; not on streams.", _INTEGER),
    HEADER_SPEECH_TOKENS_SHA256: ("SHA-256 of the speech tokens as little-endian int32; not on streams.", _STRING),
    HEADER_REQUEST_ID: ("The id the request sent, or one that was made for it.", _STRING),
}
_SPEECH_PROBLEMS = {
    400: "The request is malformed, or there is nothing in it to speak.",
    401: "An API key is needed, and none or a wrong one was sent.",
    404: "There is no such voice; `voices` lists those there are.",
    408: "The body did not arrive in time.",
    413: "The text or the body is too long.",
    415: "The body has a Content-Encoding, and none is taken.",
    429: "The queue is full, or too many bodies are on their way; come back after Retry-After seconds.",
    500: "The model failed.",
    503: "Not ready, or the engine ended before the first audio; come back after Retry-After seconds.",
    504: "The deadline passed before the first audio. A stream that has begun is cut instead.",
}
_PROBLEM: dict[str, object] = {
    "type": "object",
    "description": "Problem details (RFC 9457). Some kinds have more members.",
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": _STRING,
        "status": _INTEGER,
        "detail": _STRING,
        "instance": _STRING,
        "requestId": _STRING,
        "errors": {"type": "array", "items": _STRING},
        "field": _STRING,
        "voices": {"type": "array", "items": _STRING},
    },
    "required": ["type", "title", "status", "detail"],
}
_VOICES: dict[str, object] = {
    "type": "object",
    "properties": {
        "voices": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": _STRING,
                    "name": _STRING,
                    "prompt_seconds": {"type": "number"},
                    "prompt_text": _STRING,
                },
            },
        },
        "broken": {
            "type": "array",
            "items": {"type": "object", "properties": {"id": _STRING, "reason": _STRING}},
        },
    },
    "required": ["voices", "broken"],
}
_MODELS: dict[str, object] = {
    "type": "object",
    "properties": {
        "object": {"const": "list"},
        "data": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": _STRING, "object": {"const": "model"}, "created": _INTEGER, "owned_by": _STRING},
            },
        },
    },
    "required": ["object", "data"],
}


def document() -> dict[str, object]:
    """The whole description."""
    (_,), components = msgspec.json.schema_components([SpeechRequest], ref_template=_REF)
    components |= {"Problem": _PROBLEM, "Voices": _VOICES, "Models": _MODELS}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CosyVoice worker",
            "version": __version__,
            "description": "Text to speech with one CosyVoice model. Speech requests have OpenAI's form.",
        },
        "paths": {
            "/v1/audio/speech": {"post": _speech()},
            "/v1/audio/voices": {"get": _listing("listVoices", "The voices of the model.", "Voices")},
            "/v1/models": {"get": _listing("listModels", "The model that is served.", "Models")},
            "/ping": {"get": _probe("ping", "Liveness.", {"200": {"description": "The worker runs."}})},
            "/health": {
                "get": _probe(
                    "health",
                    "Readiness.",
                    {"200": {"description": "Speech is served."}, "503": {"description": "Loading or stopping."}},
                )
            },
        },
        "components": {
            "schemas": components,
            "securitySchemes": {_API_KEY: {"type": "http", "scheme": "bearer", "description": _API_KEY_WORDS}},
        },
    }


@functools.cache
def encoded() -> bytes:
    """The description as JSON."""
    return msgspec.json.encode(document())


def _speech() -> dict[str, object]:
    headers = {
        name: {"description": description, "schema": schema} for name, (description, schema) in _SPEECH_HEADERS.items()
    }
    audio = {"description": "The audio.", "headers": headers, "content": {"audio/wav": _AUDIO, "audio/pcm": _PCM}}
    return {
        "operationId": "speak",
        "summary": "Speak a text.",
        "security": _SECURITY,
        "requestBody": {"required": True, "content": {"application/json": {"schema": _schema("SpeechRequest")}}},
        "responses": {"200": audio, **{str(code): _problem(text) for code, text in _SPEECH_PROBLEMS.items()}},
    }


def _listing(name: str, summary: str, schema: str) -> dict[str, object]:
    content = {"application/json": {"schema": _schema(schema)}}
    return {
        "operationId": name,
        "summary": summary,
        "security": _SECURITY,
        "responses": {"200": {"description": summary, "content": content}, "401": _problem(_SPEECH_PROBLEMS[401])},
    }


def _probe(name: str, summary: str, responses: dict[str, object]) -> dict[str, object]:
    return {"operationId": name, "summary": summary, "responses": responses}


def _problem(description: str) -> dict[str, object]:
    return {"description": description, "content": {CONTENT_TYPE: {"schema": _schema("Problem")}}}


def _schema(name: str) -> dict[str, str]:
    return {"$ref": _REF.format(name=name)}

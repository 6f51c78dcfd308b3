"""What a worker container said when it ended: the tolerant parser of its termination message.

The kubelet cuts the message when a pod's containers say more than 12 KiB together, and falls back to the last lines of
the log where a container died without a word. So whatever can be made out of the text is taken, nothing is trusted,
and every text is shortened and freed of control characters before it can reach a status or a log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cosyvoice_operator.names import WORKER_EXIT_CODES

MAX_FIELD = 300
MAX_MESSAGE = 800

_START = '{"schema"'
_FIELD = re.compile(r'"(?P<name>[A-Za-z]+)":(?P<value>"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?|true|false)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Termination:
    """The fields of a termination message that could be read; `reason` is one the worker is known to give."""

    reason: str | None = None
    phase: str | None = None
    file: str | None = None
    tensor: str | None = None
    expected: str | None = None
    actual: str | None = None
    elapsed_seconds: float | None = None
    digest: str | None = None
    bytes: int | None = None
    message: str | None = None


def parse(text: str) -> Termination:
    """What `text` tells; where it holds no message of the worker's, its last line becomes `message`."""
    start = text.rfind(_START)
    if start >= 0:
        return from_fields(_decode(text[start:]))
    lines = text.strip().splitlines()
    return Termination(message=clean(lines[-1], MAX_MESSAGE) if lines else None)


def from_fields(fields: Mapping[str, Any]) -> Termination:
    """The same, from an object that was already decoded (the `failure` of a worker's /status)."""
    reason = fields.get("reason")
    return Termination(
        reason=reason if isinstance(reason, str) and reason in WORKER_EXIT_CODES else None,
        phase=clean(fields.get("phase")),
        file=clean(fields.get("file")),
        tensor=clean(fields.get("tensor")),
        expected=clean(fields.get("expected")),
        actual=clean(fields.get("actual")),
        elapsed_seconds=number(fields.get("elapsedSeconds")),
        digest=clean(fields.get("digest")),
        bytes=whole_number(fields.get("bytes")),
        message=clean(fields.get("message"), MAX_MESSAGE),
    )


def clean(value: object, limit: int = MAX_FIELD) -> str | None:
    """A foreign text made fit for a status: printable, on one line, at most `limit` characters. Else None."""
    if not isinstance(value, str) or not value:
        return None
    printable = "".join(character if character.isprintable() else " " for character in value[: limit + 1])
    return printable if len(printable) <= limit else printable[: limit - 3] + "..."


def number(value: object) -> float | None:
    """A foreign number that is one: finite, not negative, rounded to milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return round(float(value), 3)


def whole_number(value: object) -> int | None:
    """A foreign count: an integer from 0 to 2**63 - 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        return None
    return value


def _decode(text: str) -> Mapping[str, Any]:
    """The object that `text` begins with; of a cut one, the fields before the cut."""
    try:
        decoded, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return {match["name"]: _value(match["value"]) for match in _FIELD.finditer(text)}
    return decoded if isinstance(decoded, dict) else {}


def _value(text: str) -> object:
    try:
        return json.loads(text, strict=False)
    except ValueError:
        return None

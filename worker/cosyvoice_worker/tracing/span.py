"""What happened from when to when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

Value = str | bool | int | float


class Kind(IntEnum):
    """OTLP's numbers."""

    INTERNAL = 1
    SERVER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Times are seconds since the epoch; `events` are names with theirs. `error` says why it did not end well."""

    name: str
    trace: str
    id: str
    parent: str | None
    start: float
    end: float
    kind: Kind = Kind.INTERNAL
    attributes: Mapping[str, Value] = field(default_factory=dict)
    events: tuple[tuple[str, float], ...] = ()
    error: str | None = None

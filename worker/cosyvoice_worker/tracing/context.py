"""The trace that a request belongs to: its client's, by the header `traceparent`, or a new one."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

TRACE_BYTES, SPAN_BYTES = 16, 8
SAMPLED = 1

# W3C Trace Context, "traceparent Header". Later versions may append fields; ff is none.
_TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """`parent` is the client's span, None in a new trace. Not `sampled`: the client wants no trace of this request."""

    trace: str
    parent: str | None
    sampled: bool


def context_of(traceparent: str | None) -> Context:
    """What the header says. One that is malformed counts as none."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    if found is not None:
        version, trace, parent, flags, more = found.groups()
        if int(trace, 16) and int(parent, 16) and not (version == "00" and more):
            return Context(trace=trace, parent=parent, sampled=bool(int(flags, 16) & SAMPLED))
    return Context(trace=secrets.token_hex(TRACE_BYTES), parent=None, sampled=True)


def new_span_id() -> str:
    """Eight random bytes in hexadecimal."""
    return secrets.token_hex(SPAN_BYTES)

"""Spans as the JSON of an OTLP export request (opentelemetry-proto, trace/v1/trace.proto).

As protobuf's JSON has it, numbers of 64 bits are strings; ids are hexadecimal, which is OTLP's own exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cosyvoice_worker._version import __version__
from cosyvoice_worker.tracing.span import Span, Value

SCOPE = {"name": "cosyvoice_worker", "version": __version__}
STATUS_ERROR = 2


def document(resource: Mapping[str, Value], spans: Iterable[Span]) -> dict[str, Any]:
    """One request with all `spans`; `resource` describes this program."""
    scope_spans = [{"scope": SCOPE, "spans": [_span(span) for span in spans]}]
    return {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": scope_spans}]}


def _span(span: Span) -> dict[str, Any]:
    made = {
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": int(span.kind),
        "startTimeUnixNano": _nanoseconds(span.start),
        "endTimeUnixNano": _nanoseconds(span.end),
        "attributes": _attributes(span.attributes),
        "events": [{"name": name, "timeUnixNano": _nanoseconds(at)} for name, at in span.events],
        "status": {} if span.error is None else {"code": STATUS_ERROR, "message": span.error},
    }
    return made if span.parent is None else made | {"parentSpanId": span.parent}


def _attributes(values: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}


def _nanoseconds(seconds: float) -> str:
    return str(int(seconds * 1e9))

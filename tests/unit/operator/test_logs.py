"""Logs are one JSON object a line, whatever is logged."""

from __future__ import annotations

import json
import logging
import sys

from cosyvoice_operator.logs import JSONFormatter


def line(message: str, *values: object, **extra: object) -> dict[str, object]:
    record = logging.getLogger("cosyvoice_operator.test").makeRecord(
        "cosyvoice_operator.test", logging.INFO, __file__, 1, message, values, None, extra=extra
    )
    parsed: dict[str, object] = json.loads(JSONFormatter().format(record))
    return parsed


def test_facts_are_fields_of_their_own() -> None:
    entry = line("status: %s", "v1 serves", model="speech/narrator", reason="Ready", other="no field of ours")

    assert str(entry.pop("time")).endswith("Z")
    assert entry == {
        "level": "info",
        "logger": "cosyvoice_operator.test",
        "message": "status: v1 serves",
        "model": "speech/narrator",
        "reason": "Ready",
    }


def test_line_breaks_stay_inside_the_object() -> None:
    assert line("two\nlines")["message"] == "two\nlines"


def test_an_exception_is_told_with_its_trace() -> None:
    try:
        raise ValueError("no good")
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, __file__, 1, "pass failed", (), sys.exc_info())

    assert "ValueError: no good" in json.loads(JSONFormatter().format(record))["traceback"]

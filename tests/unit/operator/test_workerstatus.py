"""What is taken from a worker's /status, and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cosyvoice_operator import workerstatus
from cosyvoice_operator.observed import WorkerStatus

ANSWER: dict[str, Any] = {
    "schema": 1,
    "model": "narrator",
    "version": "v1",
    "revision": "3f9a1c0b7d",
    "phase": "Ready",
    "ready": True,
    "load": {"import": 2.1, "map": 0.2, "build": 0.3, "warmUp": 4.0, "total": 6.8},
    "engine": {"pid": 17, "restarts": 0, "inFlight": 0, "queued": 0},
    "failure": None,
}


def parse(**changes: Any) -> WorkerStatus | None:
    return workerstatus.parse(json.dumps({**ANSWER, **changes}).encode())


def test_phase_and_load_are_read() -> None:
    assert parse() == WorkerStatus(
        phase="Ready",
        load={"import": 2.1, "map": 0.2, "build": 0.3, "warmUp": 4.0, "total": 6.8},
    )


@pytest.mark.parametrize(
    "changes", [{"schema": 2}, {"schema": None}, {"phase": "Dancing"}, {"phase": None}, {"phase": ["Map"]}]
)
def test_another_schema_or_phase_is_no_answer(changes: dict[str, Any]) -> None:
    assert parse(**changes) is None


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"<html>", b"\xff\xfe", b"[" * 100_000, b" " * 65537])
def test_anything_else_is_no_answer(body: bytes) -> None:
    assert workerstatus.parse(body) is None


def test_numbers_that_are_none_and_phases_nobody_knows_are_left_out() -> None:
    answer = parse(load={"map": "fast", "build": -1, "warmUp": 1, "party": 3})

    assert answer is not None
    assert answer.load == {"warmUp": 1.0}

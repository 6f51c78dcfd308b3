"""What is taken from a worker's /status, and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cosyvoice_operator import workerstatus
from cosyvoice_operator.observed import MemoryHigh, WorkerStatus

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
        revision="3f9a1c0b7d",
    )


FAILED_SWAP: dict[str, Any] = {
    "order": "77aa00bb11.2",
    "revision": "77aa00bb11",
    "state": "Failed",
    "phase": "Map",
    "room": False,
    "failure": {"schema": 1, "reason": "MissingTensor", "phase": "Map", "file": "llm.pt", "message": "no such tensor"},
    "load": {},
}


def test_a_swap_and_its_failure_are_read() -> None:
    answer = parse(swap=FAILED_SWAP)

    assert answer is not None
    assert answer.swap is not None
    assert (answer.swap.order, answer.swap.state, answer.swap.phase, answer.swap.room) == (
        "77aa00bb11.2",
        "Failed",
        "Map",
        False,
    )
    assert (answer.swap.failure.reason, answer.swap.failure.file) == ("MissingTensor", "llm.pt")


@pytest.mark.parametrize(
    "changes",
    [
        {"order": None},
        {"order": "77aa00bb11.2.nonce"},
        {"order": "../../etc.1"},
        {"order": "a" * 64 + ".1"},
        {"state": "Dancing"},
        {"state": ["Failed"]},
        {"state": None},
    ],
)
def test_a_swap_that_cannot_be_understood_is_none_and_the_rest_is_kept(changes: dict[str, Any]) -> None:
    answer = parse(swap=FAILED_SWAP | changes)

    assert answer is not None
    assert (answer.phase, answer.swap) == ("Ready", None)


@pytest.mark.parametrize("swap", [None, [], "Switched", 1, True])
def test_what_is_no_swap_is_none(swap: object) -> None:
    answer = parse(swap=swap)

    assert answer is not None
    assert answer.swap is None


@pytest.mark.parametrize(
    "changes", [{"phase": ["Map"]}, {"phase": "Dancing"}, {"room": "yes"}, {"failure": []}, {"failure": {"file": 7}}]
)
def test_a_swaps_details_are_taken_only_as_what_they_should_be(changes: dict[str, Any]) -> None:
    answer = parse(swap=FAILED_SWAP | changes)

    assert answer is not None
    assert answer.swap is not None
    assert answer.swap.phase in {None, "Map"}
    assert answer.swap.room is False
    assert answer.swap.failure.file in {None, "llm.pt"}


@pytest.mark.parametrize("value", [None, 7, "", "UPPER", "a b", "../x", "r" * 64, "r1\n"])
def test_a_revision_or_digest_that_is_none_is_left_out(value: object) -> None:
    answer = parse(revision=value, digest=value)

    assert answer is not None
    assert (answer.revision, answer.digest) == (None, None)


def test_the_digest_of_what_serves_is_read() -> None:
    answer = parse(digest="sha256:" + "ab" * 32)

    assert answer is not None
    assert answer.digest == "sha256:" + "ab" * 32


def test_what_was_staged_of_it_is_read() -> None:
    answer = parse(staged={"bytes": 59133930, "seconds": 0.1714})

    assert answer is not None
    assert (answer.staged_bytes, answer.staged_seconds) == (59133930, 0.171)


@pytest.mark.parametrize("value", [None, [], 7, {}, {"bytes": "7", "seconds": -1}, {"bytes": -1, "seconds": True}])
def test_what_tells_of_no_staging_is_left_out(value: object) -> None:
    answer = parse(staged=value)

    assert answer is not None
    assert (answer.staged_bytes, answer.staged_seconds) == (None, None)


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


HIGH: dict[str, Any] = {"wanted": 4096, "state": "Applied", "applied": 4096, "route": "NodeAgent", "reason": None}


def test_what_came_of_memory_high_is_read() -> None:
    answer = parse(memoryHigh=HIGH)

    assert answer is not None
    assert answer.memory_high == MemoryHigh(wanted=4096, state="Applied", applied=4096, route="NodeAgent")


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        {**HIGH, "wanted": "4096"},
        {**HIGH, "wanted": -1},
        {**HIGH, "state": "Fine"},
        {**HIGH, "applied": None},
        {**HIGH, "applied": True},
    ],
)
def test_what_cannot_be_read_of_it_is_nothing(fields: object) -> None:
    answer = parse(memoryHigh=fields)

    assert answer is not None
    assert answer.memory_high is None


def test_its_words_are_cleaned_and_cut() -> None:
    answer = parse(memoryHigh={**HIGH, "state": "NotApplied", "route": ["x"], "reason": "no\n\x1b[31m" + "x" * 1000})

    assert answer is not None
    assert answer.memory_high is not None
    assert answer.memory_high.route is None
    reason = answer.memory_high.reason
    assert reason is not None
    assert len(reason) == 300
    assert reason.isprintable()

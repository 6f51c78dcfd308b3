"""How a container's end is told: codes, and a message the kubelet never has to cut."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_worker.outcome import (
    EXIT_CODES,
    MAX_CHARACTERS,
    MAX_MESSAGE_BYTES,
    Outcome,
    Phase,
    Reason,
    WorkerError,
    fail,
    write_termination_message,
)

optional_text = st.none() | st.text(max_size=4000)
outcomes = st.builds(
    Outcome,
    reason=st.sampled_from(Reason),
    phase=st.sampled_from(Phase),
    message=st.text(max_size=4000),
    file=optional_text,
    tensor=optional_text,
    expected=optional_text,
    actual=optional_text,
    elapsed_seconds=st.none() | st.floats(0, 1e6),
    digest=st.none() | st.just("sha256:" + "0" * 64),
    bytes=st.none() | st.integers(0, 2**50),
)


@pytest.mark.parametrize(
    ("code", "retryable"),
    [(64, False), (65, False), (66, False), (69, True), (70, False), (71, True), (72, True), (73, True), (77, False)],
)
def test_whether_a_code_is_worth_a_retry(code, retryable):
    reasons = [reason for reason, of_reason in EXIT_CODES.items() if of_reason == code]

    assert reasons
    assert {Outcome(reason=reason, phase=Phase.MAP, message="").retryable for reason in reasons} == {retryable}


@pytest.mark.parametrize("name", ["message", "file", "tensor", "expected", "actual"])
def test_a_text_of_a_stranger_s_can_be_spelled_and_is_no_longer_than_a_log_line_may_be(name):
    texts = {"message": "a"} | {name: "\udcff" * 10**6}

    text = getattr(Outcome(reason=Reason.CORRUPT_FILE, phase=Phase.MAP, **texts), name)

    assert text == "\\udcff" * MAX_CHARACTERS + "..."


def test_a_text_of_a_stranger_s_is_on_one_line_and_obeyed_by_no_terminal():
    outcome = Outcome(reason=Reason.CORRUPT_FILE, phase=Phase.MAP, message="é a\nb\tc", tensor="\x1b[2J\x9b\u202e\0")

    assert (outcome.message, outcome.tensor) == ("é a b c", "\\x1b[2J\\x9b\\u202e\\x00")


def test_every_reason_has_a_code():
    assert set(EXIT_CODES) == set(Reason)


def test_fields_stand_in_order_of_importance():
    error = fail(Reason.SHAPE_MISMATCH, Phase.BUILD, "why", file="llm.pt", tensor="a.b", expected=[2], actual=[3])

    assert error.outcome.to_json() == (
        '{"schema":1,"reason":"ShapeMismatch","phase":"Build","retryable":false,"file":"llm.pt","tensor":"a.b",'
        '"expected":"[2]","actual":"[3]","message":"why"}'
    )


@given(outcomes)
def test_the_message_is_short_ascii_json_whatever_it_tells(outcome):
    encoded = outcome.to_json()

    assert len(encoded) <= MAX_MESSAGE_BYTES
    assert encoded.isascii()
    decoded = json.loads(encoded)
    assert (decoded["reason"], decoded["phase"]) == (outcome.reason.value, outcome.phase.value)


@given(outcomes)
def test_texts_are_cut_at_their_ends_only(outcome):
    decoded = json.loads(outcome.to_json())

    assert outcome.message == decoded["message"] or outcome.message.startswith(decoded["message"].removesuffix("..."))


def test_the_message_is_cut_before_what_names_the_file():
    outcome = Outcome(reason=Reason.CORRUPT_FILE, phase=Phase.MAP, message="m" * 3000, file="f" * 500, actual="a" * 300)

    decoded = json.loads(outcome.to_json())

    assert (len(decoded["file"]), len(decoded["actual"])) == (500, 300)
    assert decoded["message"].endswith("m...")


def test_an_error_survives_being_sent_between_processes():
    error = fail(Reason.MISSING_FILE, Phase.STAGE, "llm.pt missing", file="llm.pt")

    received = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes

    assert isinstance(received, WorkerError)
    assert (received.outcome, str(received)) == (error.outcome, "llm.pt missing")


def test_the_message_replaces_what_the_kubelets_file_held(tmp_path: Path):
    log = tmp_path / "termination-log"
    log.write_text("x" * 5000)
    outcome = Outcome(reason=Reason.COMPLETED, phase=Phase.SERVE, message="done")

    assert write_termination_message(outcome, log)
    assert log.read_text() == outcome.to_json()


def test_outside_of_a_pod_no_file_is_made(tmp_path: Path):
    outcome = Outcome(reason=Reason.COMPLETED, phase=Phase.SERVE, message="done")

    assert not write_termination_message(outcome, tmp_path / "termination-log")
    assert list(tmp_path.iterdir()) == []

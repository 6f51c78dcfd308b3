"""What can be made out of a termination message, whatever the kubelet or the container made of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_operator import termination
from cosyvoice_operator.termination import MAX_FIELD, MAX_MESSAGE, Termination
from cosyvoice_worker.outcome import MAX_MESSAGE_BYTES, Outcome, Phase, Reason

OUTCOME = Outcome(
    reason=Reason.SHAPE_MISMATCH,
    phase=Phase.MAP,
    message="llm.pt: tensor has another shape",
    file="llm.pt",
    tensor="llm.model.model.layers.0.self_attn.q_proj.weight",
    expected="(896, 896)",
    actual="(896, 1)",
    elapsed_seconds=1.9,
)


def test_what_the_worker_writes_is_read_completely() -> None:
    assert termination.parse(OUTCOME.to_json()) == Termination(
        reason="ShapeMismatch",
        phase="Map",
        file="llm.pt",
        tensor="llm.model.model.layers.0.self_attn.q_proj.weight",
        expected="(896, 896)",
        actual="(896, 1)",
        elapsed_seconds=1.9,
        message="llm.pt: tensor has another shape",
    )


@given(st.integers(0, len(OUTCOME.to_json())))
def test_a_cut_message_tells_what_stands_before_the_cut(length: int) -> None:
    cut = OUTCOME.to_json()[:length]

    said = termination.parse(cut)

    assert (said.reason == "ShapeMismatch") == ('"reason":"ShapeMismatch"' in cut)
    assert (said.file == "llm.pt") == ('"file":"llm.pt"' in cut)


def test_a_message_behind_log_lines_is_found() -> None:
    assert termination.parse(f"starting\nfailed\n{OUTCOME.to_json()}\n").reason == "ShapeMismatch"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", None),
        ("\n \n", None),
        ("Traceback\nMemoryError: no room\n", "MemoryError: no room"),
        ("\x1b[31mred\x00", " [31mred "),
        ("x" * 2000, "x" * (MAX_MESSAGE - 3) + "..."),
    ],
)
def test_without_a_message_the_last_line_speaks(text: str, message: str | None) -> None:
    assert termination.parse(text) == Termination(message=message)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reason": "Invented"}, Termination()),
        ({"reason": 7, "file": ["llm.pt"], "bytes": "many"}, Termination()),
        ({"elapsedSeconds": -1, "bytes": True}, Termination()),
        ({"elapsedSeconds": float("inf"), "bytes": 2**70}, Termination()),
        ({"file": "a" * 1000}, Termination(file="a" * (MAX_FIELD - 3) + "...")),
        (
            {"reason": "Staged", "bytes": 5, "digest": "sha256:0"},
            Termination(reason="Staged", bytes=5, digest="sha256:0"),
        ),
    ],
)
def test_fields_of_another_kind_are_left_out(fields: dict[str, object], expected: Termination) -> None:
    assert termination.from_fields(fields) == expected


@pytest.mark.parametrize(
    "tail", [r'"file":"a\xb"', '"file":"a\nb"', '"file":"a', '"file":tru', '"bytes":' + "9" * 5000]
)
def test_a_field_that_is_no_json_is_left_out(tail: str) -> None:
    said = termination.parse('{"schema":1,"reason":"CorruptFile",' + tail)

    assert said.reason == "CorruptFile"


@given(st.text(max_size=300))
def test_no_text_is_too_strange(text: str) -> None:
    said = termination.parse('{"schema":1,' + text)

    assert said.message is None or said.message.isprintable()


def test_deep_nesting_is_no_trouble() -> None:
    termination.parse('{"schema":' + "[" * 100_000)


@given(st.text(max_size=3000), st.text(max_size=200))
def test_every_message_of_the_worker_is_understood(message: str, file: str) -> None:
    written = Outcome(reason=Reason.CORRUPT_FILE, phase=Phase.STAGE, message=message, file=file).to_json()

    assert len(written) <= MAX_MESSAGE_BYTES
    assert json.loads(written)["reason"] == termination.parse(written).reason == "CorruptFile"

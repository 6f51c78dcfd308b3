"""The arithmetic of `!ref`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_worker.models.cosyvoice2.arithmetic import calculate, whole_reference

VALUES: dict[str, object] = {"chunk_size": 25, "ratio": 2, "rate": 0.5, "name": "x", "deep.key": 7}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<chunk_size> * <ratio>", 50),
        ("<chunk_size>*<ratio>+1", 51),
        ("(<chunk_size> + 1) // <ratio>", 13),
        ("<chunk_size> % 10 - -<ratio>", 7),
        ("<chunk_size> / <ratio>", 12.5),
        ("<deep.key> * <rate>", 3.5),
        ("3", 3),
    ],
)
def test_an_expression_has_its_value(text: str, value: float) -> None:
    assert calculate(text, VALUES.__getitem__) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "<ratio> ** 9",
        "'a' * 9",
        "[1]",
        "a",
        "_5",
        "<ratio> <ratio>",
        "1 / 0",
        "<name> * 2",
        "",
        "(" * 500 + ")" * 500,
        "True",
        "<ratio>.real",
        "1 if <ratio> else 2",
        "9" * 5000,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"arithmetic|no number|an expression of"):
        calculate(text, VALUES.__getitem__)


@pytest.mark.parametrize("text", ["9007199254740993", "-1e300", "94906267 * 94906267", "<large> + 0"])
def test_a_number_beyond_what_a_float_holds_exactly_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"a number beyond 2\^53"):
        calculate(text, {"large": 2**53 + 1}.__getitem__)


@given(st.text("<>()_+-*/%.0123456789ab ", max_size=30))
def test_any_text_is_a_number_or_refused(text: str) -> None:
    try:
        value = calculate(text, lambda _: 3)
    except ValueError:
        return
    assert isinstance(value, int | float)


@pytest.mark.parametrize(("text", "name"), [("<a>", "a"), (" <a.b> ", "a.b"), ("<a> * 2", None), ("a", None)])
def test_a_reference_alone_is_recognised(text: str, name: str | None) -> None:
    assert whole_reference(text) == name

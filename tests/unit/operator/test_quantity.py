"""Quantities: equal values have one text, and only they."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_operator import quantity
from cosyvoice_operator.errors import InvalidQuantityError

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-3", "e+2"]
quantities = st.builds(
    lambda whole, fraction, suffix: f"{whole}{fraction}{suffix}",
    st.integers(0, 10**6),
    st.sampled_from(["", ".", ".5", ".25", ".125"]),
    st.sampled_from(SUFFIXES),
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("8192Mi", "8Gi"),
        ("8Gi", "8Gi"),
        (8589934592, "8Gi"),
        ("8589934592", "8Gi"),
        ("0.5", "500m"),
        ("500m", "500m"),
        ("1000m", "1"),
        ("1e3", "1000"),
        ("2k", "2000"),
        ("1.5Gi", "1536Mi"),
        ("0", "0"),
        ("0Gi", "0"),
        (".5", "500m"),
        ("5.", "5"),
        ("1u", "1u"),
        ("1500n", "1500n"),
        ("0.1n", "1n"),
        ("-1Ki", "-1Ki"),
    ],
)
def test_each_value_has_one_spelling(text: str | int, canonical: str) -> None:
    assert quantity.canonical(text) == canonical


@pytest.mark.parametrize(
    "text", ["", " ", "Gi", "8 Gi", "8gi", "8GB", "1e", "1e1000", "0x10", "--1", "nan", "1,5", "\uff18"]
)
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidQuantityError, match="is no quantity: expected a number"):
        quantity.parse(text)


def test_whole_units_are_rounded_up() -> None:
    assert quantity.to_integer("1500m") == 2


@pytest.mark.parametrize(("left", "right"), [("8Gi", None), ("8Gi", "much"), ({}, {}), ("1", "2")])
def test_what_is_not_two_equal_quantities_is_not_the_same(left: object, right: object) -> None:
    assert not quantity.same(left, right)


@given(quantities)
def test_the_canonical_text_is_a_fixed_point_of_the_same_value(text: str) -> None:
    canonical = quantity.canonical(text)

    assert quantity.canonical(canonical) == canonical
    assert 0 <= quantity.parse(canonical) - quantity.parse(text) < Fraction(1, 10**9)


@given(quantities, quantities)
def test_two_texts_are_the_same_exactly_where_their_values_are(left: str, right: str) -> None:
    nanos = [-(-quantity.parse(text) * 10**9 // 1) for text in (left, right)]

    assert quantity.same(left, right) == (nanos[0] == nanos[1])

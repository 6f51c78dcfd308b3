"""Numbers in words, held against the package whose words the models were trained on."""

from __future__ import annotations

import inflect
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosyvoice_worker.text.numerals import MAX_DIGITS, spell_out

ORACLE = inflect.engine()


NUMBERS = [*range(1300), *(10**power + more for power in range(36) for more in (0, 1, 99, 100))]


def test_every_kind_of_number_reads_as_the_package_reads_it():
    assert [spell_out(str(number)) for number in NUMBERS] == [ORACLE.number_to_words(str(number)) for number in NUMBERS]


@given(st.text("0123456789", min_size=1, max_size=MAX_DIGITS))
@settings(max_examples=500)
def test_any_digits_read_as_the_package_reads_them(digits):
    assert spell_out(digits) == ORACLE.number_to_words(digits)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("", ""),
        ("no digits", "no digits"),
        ("In 2024, 45.20 of 007.", "In two thousand and twenty-four, forty-five.twenty of seven."),
        ("1" * 37, " ".join(["one"] * 37)),
        ("٣ and 5", "three and five"),
    ],
)
def test_runs_of_digits_inside_a_text(text, spoken):
    assert spell_out(text) == spoken

"""English numbers in words."""

from __future__ import annotations

import re

import inflect

# Decillions end here; what is longer is no number that anybody would say, but an identifier: digit by digit.
MAX_DIGITS = 36

_DIGITS = re.compile(r"\d+")
_engine = inflect.engine()


def spell_out(text: str) -> str:
    """Every run of digits in words. Separators mean nothing: "45.20" becomes "forty-five.twenty"."""
    return _DIGITS.sub(lambda run: _words(run.group()), text)


def _words(digits: str) -> str:
    if len(digits) > MAX_DIGITS:
        return " ".join(_words(digit) for digit in digits)
    return str(_engine.number_to_words(digits))

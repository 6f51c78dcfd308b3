"""English numbers in words: the ones of the inflect package, which the models were trained on.

Its own import would take half as long as PyTorch's, for these two rules; the tests hold them against it.
"""

from __future__ import annotations

import re

# Decillions end here; what is longer is no number that anybody would say, but an identifier: digit by digit.
MAX_DIGITS = 36

_DIGITS = re.compile(r"\d+")
# fmt: off
_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_GROUPS = (
    "thousand", "million", "billion", "trillion", "quadrillion", "quintillion", "sextillion", "septillion", "octillion",
    "nonillion", "decillion",
)
# fmt: on


def spell_out(text: str) -> str:
    """Every run of digits in words. Separators mean nothing: "45.20" becomes "forty-five.twenty"."""
    return _DIGITS.sub(lambda run: _words(run.group()), text)


def _words(digits: str) -> str:
    if len(digits) > MAX_DIGITS:
        return " ".join(_words(digit) for digit in digits)
    return _number(int(digits))


def _number(number: int) -> str:
    """Groups of three digits with commas between them; "and" before a last one that has no hundreds."""
    rest, last = divmod(number, 1000)
    if rest == 0:
        return _group(last)
    groups = []
    for name in _GROUPS:
        rest, value = divmod(rest, 1000)
        if value:
            groups.append(f"{_group(value)} {name}")
    words = ", ".join(reversed(groups))
    if last == 0:
        return words
    return f"{words}{' and ' if last < 100 else ', '}{_group(last)}"


def _group(value: int) -> str:
    """0 to 999."""
    hundreds, rest = divmod(value, 100)
    if hundreds:
        words = f"{_SMALL[hundreds]} hundred"
        return f"{words} and {_group(rest)}" if rest else words
    if value < len(_SMALL):
        return _SMALL[value]
    tens, ones = divmod(value, 10)
    return f"{_TENS[tens - 2]}-{_SMALL[ones]}" if ones else _TENS[tens - 2]

"""Kubernetes quantities: their value, and one canonical text for each value.

The API server gives quantities back in another spelling than they were sent in (`8192Mi` comes back as `8Gi`), so texts
may only be compared here. Grammar: k8s.io/apimachinery/pkg/api/resource, `Quantity`.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from cosyvoice_operator.errors import InvalidQuantityError

Quantity = str | int | float

LARGEST = 2**63 - 1  # the API server makes this of everything above it

_PATTERN = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"(?:(?P<binary>[KMGTPE]i)|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SMALLEST = Fraction(1, 10**9)


def parse(quantity: Quantity) -> Fraction:
    """The exact value. Raises InvalidQuantityError."""
    match = _PATTERN.fullmatch(str(quantity))
    if match is None:
        raise InvalidQuantityError(quantity)
    value = Fraction(f"{match['sign']}{match['number']}")
    if match["binary"]:
        return value * Fraction(1024 ** _BINARY[match["binary"]])
    if match["decimal"]:
        return value * _power_of_ten(_DECIMAL[match["decimal"]])
    if match["exponent"]:
        return value * _power_of_ten(int(match["exponent"]))
    return value


def to_integer(quantity: Quantity) -> int:
    """The value rounded up, as Kubernetes does where it wants whole units (bytes). Raises InvalidQuantityError."""
    return math.ceil(parse(quantity))


def canonical(quantity: Quantity) -> str:
    """The one text for this value: equal exactly where the values are. Raises InvalidQuantityError.

    Whole numbers take the largest binary suffix that divides them, fractions the largest of m, u and n that does.
    Anything finer than a nano is rounded up, as Kubernetes does.
    """
    value = math.ceil(parse(quantity) / _SMALLEST) * _SMALLEST
    if value.denominator == 1:
        return _whole(value.numerator)
    for suffix in ("m", "u"):
        scaled = value / _power_of_ten(_DECIMAL[suffix])
        if scaled.denominator == 1:
            return f"{scaled.numerator}{suffix}"
    return f"{(value / _SMALLEST).numerator}n"


def same(left: object, right: object) -> bool:
    """Whether two texts or numbers are quantities of the same value."""
    if not isinstance(left, str | int | float) or not isinstance(right, str | int | float):
        return False
    try:
        return canonical(left) == canonical(right)
    except InvalidQuantityError:
        return False


def _whole(value: int) -> str:
    if value:
        for suffix, power in reversed(_BINARY.items()):
            unit = 1024**power
            if value % unit == 0:
                return f"{value // unit}{suffix}"
    return str(value)


def _power_of_ten(exponent: int) -> Fraction:
    return Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)

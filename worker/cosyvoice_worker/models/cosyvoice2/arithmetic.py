"""The arithmetic that a configuration's `!ref` may hold, `<chunk_size> * <token_mel_ratio>`, computed without eval."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

Number = int | float

# Whole numbers up to here are exact as floats too; without a bound they could grow by squaring to any length.
LARGEST = 2**53
MAX_CHARACTERS = 1000

_REFERENCE = re.compile(r"<([^<>]+)>")
_WHOLE_REFERENCE = re.compile(r"\s*<([^<>]+)>\s*")
_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def whole_reference(text: str) -> str | None:
    """The name in `<name>` where the text is nothing else; it may then stand for anything, not only a number."""
    match = _WHOLE_REFERENCE.fullmatch(text)
    return match.group(1) if match else None


def calculate(text: str, value_of: Callable[[str], object]) -> Number:
    """The value of `text`: numbers, `<name>` references, + - * / // % and parentheses.

    `value_of` resolves a name. Raises ValueError for anything else in the text, and for a reference to no number.
    """
    names: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        names.append(match.group(1))
        return f" _{len(names) - 1} "

    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"an expression of {len(text)} characters, more than {MAX_CHARACTERS}")
    expression = _REFERENCE.sub(placeholder, text).strip()
    try:
        tree = ast.parse(expression, mode="eval").body
        return _value(tree, [_number(value_of(name), name) for name in names])
    except (SyntaxError, ArithmeticError, RecursionError, MemoryError) as error:
        raise ValueError(f"not an arithmetic expression: {text!r}") from error


def _value(node: ast.expr, references: list[Number]) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return bounded(value)
        case ast.Name(id=name) if name.startswith("_") and name[1:].isdecimal() and int(name[1:]) < len(references):
            return references[int(name[1:])]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, references)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return bounded(_OPERATORS[type(op)](_value(left, references), _value(right, references)))
        case _:
            raise ValueError(f"not arithmetic: {ast.unparse(node)}")


def bounded(value: Number) -> Number:
    """`value` if it is one that a configuration can mean. Raises ValueError."""
    if not -LARGEST <= value <= LARGEST:
        raise ValueError("a number beyond 2^53")
    return value


def _number(value: object, name: str) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"<{name}> is no number but {type(value).__name__}")
    return bounded(value)

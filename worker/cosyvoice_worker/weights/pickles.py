"""Looks through the pickle of a checkpoint before PyTorch obeys it.

A tuple that holds another one twice, which does the same, makes a key of a dict that takes 2^n steps to hash: a file of
a kilobyte would keep the interpreter for years, and no signal gets through meanwhile. What `torch.save` writes takes
tuples up again seldom or never. What costs a file of megabytes to be a burden (`faults/crafted.py`) is left to the
process of its own that loads, and to the circuit breaker that ends it.
"""

from __future__ import annotations

import io
import pickletools

# Of the published model's files the largest has 200 kB.
MAX_BYTES = 16 * 1024 * 1024
MAX_TUPLES_AGAIN = 16

_TUPLES = frozenset({"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"})
# What leaves another thing on top of the stack than the instruction before it, and never a tuple.
_OTHERS = frozenset(
    {"BINUNICODE", "SHORT_BINSTRING", "GLOBAL", "REDUCE", "BINPERSID", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"}
)
_PUTS, _GETS = frozenset({"BINPUT", "LONG_BINPUT"}), frozenset({"BINGET", "LONG_BINGET"})


def problem_of(pickled: bytes, pickles: int = 1) -> str | None:
    """Why the `pickles` that follow each other at the start of the bytes are not to be obeyed; None where they may be.

    One that is cut off or unknown ends the look: PyTorch refuses it by itself.
    """
    stream = io.BytesIO(pickled[:MAX_BYTES])
    try:
        for _ in range(pickles):
            if _tuples_again(stream) > MAX_TUPLES_AGAIN:
                return f"it takes tuples up again more than {MAX_TUPLES_AGAIN} times"
    except ValueError:
        if len(pickled) > MAX_BYTES and stream.tell() == MAX_BYTES:
            return f"its instructions are more than {MAX_BYTES} bytes"
    return None


def _tuples_again(stream: io.BytesIO) -> int:
    """How often a memoised tuple is fetched, up to the end of one pickle."""
    kept: dict[object, bool] = {}
    on_top = False
    again = 0
    for opcode, argument, _ in pickletools.genops(stream):
        name = opcode.name
        if name in _PUTS:
            kept[argument] = on_top
        elif name in _GETS:
            on_top = kept.get(argument, True)
            again += on_top
        elif name in _TUPLES:
            on_top = True
        elif name in _OTHERS:
            on_top = False
        else:
            on_top = True  # of whatever lay below
    return again

"""Checkpoints that make loading itself go wrong. They hold the good weights and no code: only tensors, tuples, numbers.

Loading without running code (`weights_only`) keeps a file from doing what it wants, not from being a burden. That is
what the circuit breaker and a process of its own for the model are for, and what these files try.
"""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

from cosyvoice_worker.faults import tensors
from cosyvoice_worker.faults.archive import rewrite
from cosyvoice_worker.faults.copy import Copy
from cosyvoice_worker.faults.fault import Damage
from cosyvoice_worker.faults.files import HIFT

SLOW_KEYS = 50_000  # half a minute on a core that has nothing else to do
ENDLESS_KEYS = 1_000_000  # 400 times as long: hours
NESTED_TUPLES = 1_000_000
ASKED_BYTES = 2**60

# CPython's hash of an integer is its remainder by this prime (on 64 bits), so all its multiples collide.
_HASH_MODULUS = 2**61 - 1
_KEY_BYTES = 11


def load_slowly(copy: Copy) -> Damage:
    """A load that ends well, but late."""
    damage = _craft(copy, _colliding_keys(SLOW_KEYS), f"builds a dict of {SLOW_KEYS} colliding keys first")
    needs = "spec.engine.loadTimeoutSeconds below what the load takes (about 30 s more than the good one's)"
    return Damage(file=damage.file, what=damage.what, needs=needs)


def load_endlessly(copy: Copy) -> Damage:
    """A load that nobody waits for to end."""
    return _craft(copy, _colliding_keys(ENDLESS_KEYS), f"builds a dict of {ENDLESS_KEYS} colliding keys: for hours")


def crash(copy: Copy) -> Damage:
    """A tuple in a tuple in a tuple ..., used as a key: CPython's hash of it runs out of stack, which is a SIGSEGV."""
    nested = pickle.EMPTY_TUPLE + pickle.TUPLE1 * NESTED_TUPLES
    instructions = pickle.EMPTY_DICT + nested + pickle.NONE + pickle.SETITEM
    return _craft(copy, instructions, f"hashes {NESTED_TUPLES} nested tuples")


def take_all_memory(copy: Copy) -> Damage:
    """An empty array of more bytes than there are. The allocation is refused: no node suffers."""
    size = pickle.LONG1 + bytes([_KEY_BYTES]) + ASKED_BYTES.to_bytes(_KEY_BYTES, "little")
    # Among the few things that loading without running code may make are arrays of bytes.
    instructions = pickle.GLOBAL + b"builtins\nbytearray\n" + size + pickle.TUPLE1 + pickle.REDUCE
    return _craft(copy, instructions, f"asks for an array of {ASKED_BYTES} bytes first")


def _craft(copy: Copy, instructions: bytes, what: str) -> Damage:
    import torch  # noqa: PLC0415 - a command line has to be wrong without it

    state = tensors.read(copy, HIFT)
    with tempfile.TemporaryDirectory(dir=copy.directory) as scratch:
        plain = Path(scratch) / HIFT
        torch.save(state, plain)  # whichever of its formats the good file has
        rewrite(plain, copy.new(HIFT), instructions)
    return Damage(file=HIFT, what=what)


def _colliding_keys(count: int) -> bytes:
    """Instructions for a dict whose every key has to be compared with all the keys before it."""
    keys = (
        pickle.LONG1 + bytes([_KEY_BYTES]) + (index * _HASH_MODULUS).to_bytes(_KEY_BYTES, "little") + pickle.NONE
        for index in range(count)
    )
    return pickle.EMPTY_DICT + pickle.MARK + b"".join(keys) + pickle.SETITEMS

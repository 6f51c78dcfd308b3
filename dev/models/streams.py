"""Numbers from names: a reproducible stream of values for every tag, whatever the numpy version.

A tag's stream is numpy's Philox counter keyed by the first 16 bytes of the tag's sha256. Only the raw 64-bit words are
taken from numpy (they are the algorithm itself); the distributions are made of them here by integer arithmetic and one
float64 operation, so that no library change can move a value. The recorded results of the tests rest on this.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt

Shape = tuple[int, ...]

# A Gaussian is approximated by the sum of the four 16-bit quarters of a word.
_QUARTERS = 4
_QUARTER_VALUES = 1 << 16
_SUM_MEAN = _QUARTERS * (_QUARTER_VALUES - 1) / 2
_SUM_STD = math.sqrt(_QUARTERS * (_QUARTER_VALUES**2 - 1) / 12)


def raw(tag: str, count: int) -> npt.NDArray[np.uint64]:
    """The first `count` words of the tag's stream; `raw(tag, n) % k` gives ids below k."""
    key = np.frombuffer(hashlib.sha256(tag.encode()).digest(), dtype="<u8", count=2)
    words: npt.NDArray[np.uint64] = np.random.Philox(key=key).random_raw(count)
    return words


def normal(tag: str, shape: Shape) -> npt.NDArray[np.float64]:
    """Nearly Gaussian values of mean 0 and standard deviation 1, none beyond 3.47."""
    quarters = raw(tag, math.prod(shape)).astype("<u8", copy=False).view("<u2").reshape(-1, _QUARTERS)
    sums = quarters.sum(axis=1, dtype=np.uint64).astype(np.float64)
    values: npt.NDArray[np.float64] = (sums.reshape(shape) - _SUM_MEAN) / _SUM_STD
    return values


def uniform(tag: str, shape: Shape) -> npt.NDArray[np.float64]:
    """Values in [0, 1) with 24 bits, exact in float32; a longer draw starts with the shorter one."""
    bits = raw(tag, math.prod(shape)) >> np.uint64(40)
    values: npt.NDArray[np.float64] = bits.astype(np.float64).reshape(shape) / (1 << 24)
    return values

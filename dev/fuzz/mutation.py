"""Damaged and hostile variants of a good file: flipped bits, lost ends, doubled parts, levels without end, numbers that
claim too much.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

# Sizes and offsets that a header may claim.
_CLAIMS = (0, 1, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**60, 2**64 - 1)
# Fragments that mean something to one of the readers: JSON, YAML, pickle, arithmetic.
_FRAGMENTS = (
    b"[",
    b"{",
    b'"',
    b"\\ud800",
    b"1e999",
    b"NaN",
    b"null",
    b"-1",
    b"true",
    b"9" * 30,
    b"!!python/object/apply:os.system ['true']",
    b"!ref <a>",
    b"&a *a",
    b"&b [*b, *b]",
    b"\nx: &x {<<: *x}\n",
    b"!!bool x",
    b"!!timestamp x",
    b"!ref <a> * <a>",
    b"0x" + b"f" * 50,
    b"1:1:1:1",
    b"\x9b\x1b[2J",
    b"h\x00h\x00\x86q\x01",
    b"[]",
    b"{}",
    b"**",
    b"//0",
    b"cos\nsystem\n",
    b"R.",
    b"\x00",
    b"\xff",
)
# What opens one more level: JSON, YAML, msgpack, pickle, arithmetic.
_OPENINGS = (b"[", b'{"a":', b'{"schema":1,"a":[', b"- ", b"\x91", b"(", b"(-")
_LEVELS = (64, 1_000, 20_000)
_MAX_BYTES = 64 * 1024

_Change = Callable[[random.Random, bytearray, int], None]


def variants(seeds: Sequence[bytes], random_seed: int) -> Iterator[bytes]:
    """Without end: one variant after the other, of `seeds` and of earlier variants. Equal arguments, equal variants."""
    rng = random.Random(random_seed)  # noqa: S311 - to be repeatable, not secret
    pool = list(seeds)
    while True:
        content = bytearray(rng.choice(pool))
        for _ in range(rng.choice((1, 1, 2, 3, 8))):
            rng.choice(_CHANGES)(rng, content, rng.randrange(len(content) + 1))
        variant = bytes(content[:_MAX_BYTES]) if len(content) > max(_MAX_BYTES, *map(len, seeds)) else bytes(content)
        if rng.random() < 0.02 and len(pool) < 200:
            pool.append(variant)
        yield variant


def _flip(rng: random.Random, content: bytearray, at: int) -> None:
    if at < len(content):
        content[at] ^= 1 << rng.randrange(8)


def _replace(rng: random.Random, content: bytearray, at: int) -> None:
    if at < len(content):
        content[at] = rng.randrange(256)


def _insert_fragment(rng: random.Random, content: bytearray, at: int) -> None:
    content[at:at] = rng.choice(_FRAGMENTS)


def _write_fragment(rng: random.Random, content: bytearray, at: int) -> None:
    fragment = rng.choice(_FRAGMENTS)
    content[at : at + len(fragment)] = fragment


def _claim(rng: random.Random, content: bytearray, at: int) -> None:
    width = rng.choice((2, 4, 8))
    order = "little" if rng.random() < 0.8 else "big"
    claimed = rng.choice(_CLAIMS) & (2 ** (8 * width) - 1)
    content[at : at + width] = claimed.to_bytes(width, order)


def _remove(rng: random.Random, content: bytearray, at: int) -> None:
    del content[at : at + rng.choice((1, 2, 8, 64))]


def _double(rng: random.Random, content: bytearray, at: int) -> None:
    start = rng.randrange(len(content) + 1)
    content[at:at] = content[start : start + rng.choice((1, 8, 32, 128))]


def _nest(rng: random.Random, content: bytearray, at: int) -> None:
    content[at:at] = rng.choice(_OPENINGS) * rng.choice(_LEVELS)


def _cut(_rng: random.Random, content: bytearray, at: int) -> None:
    del content[at:]


_CHANGES: tuple[_Change, ...] = (
    _flip,
    _replace,
    _insert_fragment,
    _write_fragment,
    _claim,
    _remove,
    _double,
    _nest,
    _cut,
)

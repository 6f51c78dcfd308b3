"""Which pickles PyTorch is not shown: those that keep it busy without bound."""

from __future__ import annotations

import collections
import io
import pickle
import zipfile

import pytest
import torch

from cosyvoice_worker.weights.pickles import MAX_BYTES, problem_of

AGAIN = "it takes tuples up again more than 16 times"
TOO_LONG = f"its instructions are more than {MAX_BYTES} bytes"


def saved(content: object) -> bytes:
    """The pickle of what torch.save writes."""
    stream = io.BytesIO()
    torch.save(content, stream)
    with zipfile.ZipFile(stream) as archive:
        return next(archive.read(name) for name in archive.namelist() if name.endswith("/data.pkl"))


def doubling(levels: int, between: bytes = b"") -> bytes:
    """A dict of tuples each of which holds the one before it twice; the last one is a key."""
    pairs = b"".join(b"K%bh%bh%b\x86%bq%b" % (b(n + 1), b(n), b(n), between, b(n + 1)) for n in range(levels))
    return b"\x80\x02}(K\x00K\x01q\x00" + pairs + b"h%bNu." % b(levels)


def b(number: int) -> bytes:
    return bytes([number])


def test_checkpoints_are_let_through() -> None:
    tensors = {f"layer.{number}.weight": torch.ones(2, 3) for number in range(1000)}

    assert problem_of(saved(tensors)) is None
    assert problem_of(saved(collections.OrderedDict(tensors))) is None


def test_a_pair_of_numbers_that_an_optimiser_shares_is_let_through() -> None:
    betas = (0.9, 0.999)

    assert problem_of(saved({"groups": [{"betas": betas}] * 3, "a": {"betas": betas}})) is None


@pytest.mark.parametrize("between", [b"", b"(u"], ids=["at once", "with an instruction between"])
def test_tuples_that_double_are_not(between: bytes) -> None:
    assert problem_of(doubling(40, between)) == AGAIN


def test_they_are_found_behind_other_pickles_too() -> None:
    before = pickle.dumps(1, protocol=2)

    assert problem_of(before + doubling(40), pickles=2) == AGAIN
    assert problem_of(before + doubling(40), pickles=1) is None


def test_instructions_without_end_are_not() -> None:
    text = b"X" + (2**20).to_bytes(4, "little") + bytes(2**20)

    assert problem_of(b"\x80\x02(" + text * 17 + b"t.") == TOO_LONG
    assert problem_of(b"\x80\x02X" + (2**31).to_bytes(4, "little") + bytes(MAX_BYTES)) == TOO_LONG


@pytest.mark.parametrize("content", [b"", b"\x80", b"\x80\x02X\x05", b"\x80\x02\xff", b"no pickle at all"])
def test_what_is_no_pickle_is_left_to_pytorch(content: bytes) -> None:
    assert problem_of(content) is None

"""Whether two engines have room: the arithmetic and its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_worker.cgroup import RESERVE_BYTES
from cosyvoice_worker.outcome import Outcome, Reason
from cosyvoice_worker.server.room import MIB, Memory, Shares, share


def memory(limit: int, used: int, first: int, peak: int) -> Memory:
    return Memory(limit=limit * MIB, used=used * MIB, first=first * MIB, first_peak=peak * MIB)


@pytest.mark.parametrize(
    ("given_memory", "second", "first_growth"),
    [
        (memory(1000, 308, 100, 100), 300, 200),
        (memory(1000, 308, 100, 200), 300, 200),
        (memory(592, 300, 100, 100), 100, 0),
        (memory(602, 300, 50, 75), 80, 30),
        (memory(192, 0, 0, 0), 0, 0),
    ],
    ids=["half of the rest for each", "the first one may have its peak again", "just enough", "a bit more", "nothing"],
)
def test_what_is_left_is_divided(given_memory: Memory, second: int, first_growth: int) -> None:
    shares = share(given_memory)

    assert shares == Shares(second=second * MIB, first_growth=first_growth * MIB)


def test_too_little_is_refused_with_the_arithmetic() -> None:
    refusal = share(memory(1024, 500, 300, 380))

    assert isinstance(refusal, Outcome)
    assert (refusal.reason, refusal.retryable) == (Reason.OUT_OF_MEMORY, True)
    assert refusal.message == (
        "no room for a second engine: it needs 380.0 MiB, as much as the one that serves has had, and that one may "
        "take 80.0 MiB more; of the worker container's memory limit of 1024.0 MiB, 500.0 MiB are used and 192.0 MiB "
        "kept back, which leaves 332.0 MiB: raise spec.worker.resources.limits.memory to at least 1152Mi"
    )
    assert (refusal.expected, refusal.actual) == (f"{460 * MIB} bytes", f"{332 * MIB} bytes")


def test_a_container_that_is_over_full_leaves_nothing() -> None:
    refusal = share(memory(100, 100, 10, 10))

    assert isinstance(refusal, Outcome)
    assert "which leaves 0.0 MiB: " in refusal.message


_BYTES = st.integers(min_value=0, max_value=2**40)


@given(limit=_BYTES, used=_BYTES, first=_BYTES, more=_BYTES)
def test_both_shares_together_never_pass_the_limit(limit: int, used: int, first: int, more: int) -> None:
    shares = share(Memory(limit=limit, used=used, first=first, first_peak=first + more))

    if isinstance(shares, Shares):
        assert used + shares.second + shares.first_growth + RESERVE_BYTES <= limit
        assert shares.second >= first + more
        assert shares.first_growth >= more


@given(limit=_BYTES, used=_BYTES, first=_BYTES, more=_BYTES)
def test_the_advice_is_enough(limit: int, used: int, first: int, more: int) -> None:
    refusal = share(Memory(limit=limit, used=used, first=first, first_peak=first + more))

    if isinstance(refusal, Outcome):
        advice = int(refusal.message.rpartition(" ")[2].removesuffix("Mi")) * MIB
        assert isinstance(share(Memory(limit=advice, used=used, first=first, first_peak=first + more)), Shares)

"""What the node agent does about one container."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_operator.nodeagent.decision import Release, Seen, Set, decide

PAGE = 4096
GIB = 2**30

CASES = {
    "nothing was ever set": (GIB, None, None, False, Set(GIB)),
    "as it is to be": (GIB, GIB, GIB, False, None),
    "whole pages": (GIB + 1, GIB, GIB, False, None),
    "systemd wrote max": (GIB, None, GIB, False, Set(GIB)),
    "somebody wrote another value": (GIB, 5 * GIB, GIB, False, Set(GIB)),
    "the wish changed": (2 * GIB, GIB, GIB, False, Set(2 * GIB)),
    "somebody else set what is wanted": (GIB, GIB, None, False, None),
    "the wish is gone": (None, GIB, GIB, False, Release(restore=True)),
    "the wish is gone and somebody else's value there": (None, 5 * GIB, GIB, False, Release(restore=False)),
    "the wish is gone and max there already": (None, None, GIB, False, Release(restore=False)),
    "no wish and somebody else's value": (None, GIB, None, False, None),
    "no wish": (None, None, None, False, None),
    "the worker does it itself": (GIB, None, None, True, None),
    "the worker does it itself now": (GIB, GIB, GIB, True, Release(restore=True)),
}


@pytest.mark.parametrize(("wanted", "high", "marked", "delegated", "action"), CASES.values(), ids=CASES)
def test_each_case(
    wanted: int | None, high: int | None, marked: int | None, delegated: bool, action: Set | Release | None
) -> None:
    assert decide(wanted, Seen(high=high, marked=marked, delegated=delegated), PAGE) == action


amounts = st.none() | st.integers(PAGE, 2**40).map(lambda count: count - count % PAGE)


def after(seen: Seen, action: Set | Release | None) -> Seen:
    """The container once the action is done."""
    match action:
        case Set(high=high):
            return Seen(high=high, marked=high, delegated=seen.delegated)
        case Release(restore=restore):
            return Seen(high=None if restore else seen.high, marked=None, delegated=seen.delegated)
        case None:
            return seen


@given(wanted=st.none() | st.integers(PAGE, 2**40), high=amounts, marked=amounts, delegated=st.booleans())
def test_one_pass_is_enough_and_foreign_values_stay(
    wanted: int | None, high: int | None, marked: int | None, delegated: bool
) -> None:
    seen = Seen(high=high, marked=marked, delegated=delegated)

    done = after(seen, decide(wanted, seen, PAGE))

    assert decide(wanted, done, PAGE) is None
    if wanted is not None and not delegated:
        assert done.high == wanted - wanted % PAGE
    elif high != marked:
        assert done.high == high
    else:
        assert done.high is None

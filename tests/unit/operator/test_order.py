"""Orders on pods: what is written is what is read, and anything else is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_operator import order
from cosyvoice_operator.order import Order

NOON = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
revisions = st.from_regex(r"[0-9a-f]{10}", fullmatch=True)
seconds = st.integers(0, 10**9).map(lambda count: NOON + timedelta(seconds=count)) | st.none()


@given(revisions, st.integers(0, 999_999_999), seconds)
def test_an_order_is_read_as_it_was_written(revision: str, attempt: int, given_at: datetime | None) -> None:
    written = Order(revision=revision, attempt=attempt, given=given_at)

    assert order.parse(written.text) == written
    assert written.text.startswith(written.name)


def test_the_same_order_given_again_has_the_same_name() -> None:
    first = Order(revision="3f9a1c0b7d", attempt=2, given=NOON)
    again = Order(revision="3f9a1c0b7d", attempt=2, given=NOON + timedelta(seconds=10))

    assert (first.name, first.text) == ("3f9a1c0b7d.2", "3f9a1c0b7d.2.1796040000")
    assert again.name == first.name
    assert again.text != first.text


@pytest.mark.parametrize(
    "text",
    [None, "", "3f9a1c0b7d", "3f9a1c0b7d.", ".1", "3f9a1c0b7d.x", "3f9a1c0b7d.1.x", "a/b.1", "3f.1.1.1", " 3f.1"],
)
def test_anything_else_is_no_order(text: str | None) -> None:
    assert order.parse(text) is None


def test_a_time_that_no_calendar_has_is_none() -> None:
    assert order.parse("3f9a1c0b7d.2.999999999999") == Order(revision="3f9a1c0b7d", attempt=2)

"""The header `traceparent`, as W3C Trace Context has it."""

from __future__ import annotations

import pytest

from cosyvoice_worker.tracing.context import Context, context_of

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("header", "sampled"),
    [
        (f"00-{TRACE}-{PARENT}-01", True),
        (f"00-{TRACE}-{PARENT}-00", False),
        (f"00-{TRACE}-{PARENT}-03", True),
        (f"cc-{TRACE}-{PARENT}-01-what-the-future-brings", True),
    ],
)
def test_a_client_s_trace_is_taken_over(header: str, sampled: bool) -> None:
    assert context_of(header) == Context(trace=TRACE, parent=PARENT, sampled=sampled)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-01-more",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{PARENT}-01\n",
    ],
)
def test_anything_else_begins_a_new_trace(header: str | None) -> None:
    first, second = context_of(header), context_of(header)

    assert (first.parent, first.sampled) == (None, True)
    assert first.trace != second.trace
    assert len(bytes.fromhex(first.trace)) == 16

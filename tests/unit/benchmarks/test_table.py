"""What the benchmarks print: Markdown that can be put into the documentation as it is."""

from __future__ import annotations

import pytest

from benchmarks._rounds import alternate
from benchmarks._table import goal, table


def test_a_table_is_aligned_markdown() -> None:
    assert table(["way", "seconds"], [["mapped", "0.50"], ["copying", "10.00"]]) == "\n".join(
        [
            "| way     | seconds |",
            "| ------- | ------: |",
            "| mapped  |    0.50 |",
            "| copying |   10.00 |",
        ]
    )


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="has 1 cells, the head 2"):
        table(["way", "seconds"], [["mapped"]])


@pytest.mark.parametrize(("value", "verdict"), [(0.099, "met"), (0.1, "met"), (0.101, "NOT met")])
def test_a_goal_says_whether_it_is_met(value: float, verdict: str) -> None:
    assert goal("time", value, 0.1, 3) == f"goal: time: {value:.3f}, at most 0.1 wanted: {verdict}"


def test_ways_take_turns_in_alternating_order(capsys: pytest.CaptureFixture[str]) -> None:
    order = []

    def way(name: str) -> int:
        order.append(name)
        return len(order)

    results = alternate(3, {"ours": lambda: way("ours"), "other": lambda: way("other")})

    assert order == ["ours", "other", "other", "ours", "ours", "other"]
    assert results == {"ours": [1, 4, 5], "other": [2, 3, 6]}
    assert "round 3 of 3: other" in capsys.readouterr().err

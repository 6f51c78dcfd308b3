"""The arithmetic of the benchmarks' tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks._figures import percentile, ratios, spread

MEASURED = st.lists(st.floats(0.001, 1000), min_size=1, max_size=30)


def test_a_spread_is_median_smallest_and_largest() -> None:
    assert spread([3.0, 1.0, 2.0]).text(1) == "2.0 (1.0-3.0)"


def test_the_median_of_an_even_number_lies_between_the_middle_two() -> None:
    assert spread([1.0, 2.0, 4.0, 9.0]).median == 3.0


def test_nothing_measured_has_no_spread() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        spread([])


def test_ratios_pair_the_rounds() -> None:
    assert ratios([1.0, 2.0], [4.0, 10.0]) == [0.25, 0.2]


def test_ratios_refuse_rounds_that_do_not_pair_up() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratios([1.0, 2.0], [4.0])


@pytest.mark.parametrize(("share", "expected"), [(0.01, 1), (0.5, 5), (0.51, 6), (0.9, 9), (0.99, 10), (1.0, 10)])
def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed(share: float, expected: float) -> None:
    assert percentile([7, 1, 2, 3, 10, 4, 5, 6, 8, 9], share) == expected


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 0.0), ([1.0], 1.01)])
def test_a_percentile_of_nothing_or_of_another_share_is_refused(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="expected values and a share"):
        percentile(values, share)


@given(MEASURED, st.floats(0.01, 1))
def test_a_percentile_was_measured_and_lies_within_the_spread(values: list[float], share: float) -> None:
    found = percentile(values, share)

    assert found in values
    assert spread(values).smallest <= found <= spread(values).largest

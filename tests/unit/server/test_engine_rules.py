"""When an engine is stuck, a load is over, a worker gives up."""

from __future__ import annotations

import pytest

from cosyvoice_worker.server.engine_rules import Progress, gives_up, is_stuck, load_is_over, recent_deaths, retry_after


@pytest.mark.parametrize(
    ("busy", "slowest_step", "since_last_step", "stuck"),
    [
        (True, 0.1, 29.9, False),
        (True, 0.1, 30.0, False),
        (True, 0.1, 30.1, True),
        (True, 8.0, 79.0, False),
        (True, 8.0, 80.1, True),
        (False, 0.1, 1e6, False),
    ],
)
def test_a_busy_engine_without_steps_is_stuck(
    busy: bool, slowest_step: float, since_last_step: float, stuck: bool
) -> None:
    progress = Progress(busy=busy, moved_at=0.0, slowest_step=slowest_step)

    assert is_stuck(progress, since_last_step) is stuck


@pytest.mark.parametrize(("now", "over"), [(100.0, False), (220.0, False), (220.1, True)])
def test_a_load_is_over_after_its_timeout(now: float, over: bool) -> None:
    assert load_is_over(100.0, 120.0, now) is over


@pytest.mark.parametrize(
    ("deaths", "now", "end"),
    [
        ([], 0.0, False),
        ([0.0, 1.0], 1.0, False),
        ([0.0, 1.0, 2.0], 2.0, True),
        ([0.0, 300.0, 600.0], 600.0, True),
        ([0.0, 300.0, 600.5], 600.5, False),
        ([0.0, 300.0, 700.0, 800.0], 800.0, True),
    ],
)
def test_three_deaths_in_ten_minutes_end_the_worker(deaths: list[float], now: float, end: bool) -> None:
    assert gives_up(deaths, now) is end


def test_deaths_are_forgotten_after_ten_minutes() -> None:
    assert recent_deaths([0.0, 300.0, 700.0], 700.0) == [300.0, 700.0]


@pytest.mark.parametrize(("before", "each", "seconds"), [(0, 0.0, 1), (17, 0.01, 1), (17, 2.0, 34), (17, 100.0, 60)])
def test_retry_after_is_the_queue_ahead_within_a_minute(before: int, each: float, seconds: int) -> None:
    assert retry_after(before, each) == seconds

"""What each benchmark concludes from its figures."""

from __future__ import annotations

from benchmarks import concurrent_loads, first_requests, load, startup
from benchmarks._loaders import Load
from benchmarks._requests import Ten
from benchmarks.first_requests import Life
from benchmarks.startup import Start

MIB = 2**20
GIB = 2**30


def a_load(seconds: float, *, growth: int, peak: int) -> Load:
    return Load(load=seconds, touch=0.0, cpu=seconds, growth=growth * MIB, peak=peak * MIB)


def test_loading_is_compared_round_by_round() -> None:
    mapped = [a_load(1, growth=50, peak=100), a_load(4, growth=50, peak=100), a_load(1, growth=50, peak=100)]
    copying = [
        a_load(20, growth=1000, peak=2000),
        a_load(40, growth=1000, peak=2000),
        a_load(10, growth=1000, peak=2000),
    ]

    text = load.report(1000 * MIB, mapped, copying)

    assert "0.100 (0.050-0.100)" in text
    assert "time to load, mapped / copying: 0.100, at most 0.1 wanted: met" in text
    assert "memory grown, mapped / weights: 0.050, at most 0.06 wanted: met" in text
    assert "peak, mapped / copying: 0.050, at most 0.15 wanted: met" in text


def test_lost_loaders_are_judged_at_the_largest_limit_that_costs_the_others_three() -> None:
    lost = {
        3 * GIB: {"copying": [5, 5], "mapped": [1, 0]},
        6 * GIB: {"copying": [3, 4], "mapped": [0, 0]},
        9 * GIB: {"copying": [3, 2], "mapped": [0, 0]},
    }

    text = concurrent_loads.report(2 * GIB, lost)

    assert "| 3 GiB (1.5 x the weights) |" in text
    assert "mapped, lost at 6 GiB, where copying loses 3 or more: 0, at most 0 wanted: met" in text


def test_no_limit_is_chosen_where_the_others_lose_too_few() -> None:
    text = concurrent_loads.report(2 * GIB, {3 * GIB: {"copying": [2], "mapped": [0]}})

    assert text.endswith("at none of these limits does copying lose 3")


def test_a_server_with_nothing_to_load_has_no_time_to_ready() -> None:
    text = startup.report({startup.STAGED: [Start(0.1, 2.0)], startup.HELLO: [Start(0.4, None)]})

    hello = next(line for line in text.splitlines() if line.startswith("| hello"))
    assert [cell.strip() for cell in hello.strip("|").split("|")][2:] == ["0.25 (0.25-0.25)", "-", "-"]
    assert "exec to the first /ping, seconds: 0.100, at most 0.3 wanted: met" in text


def test_first_requests_are_compared_by_pairs_of_starts_and_over_all() -> None:
    short = Ten([float(second) for second in range(1, 11)], cpu=8.0)
    long = Ten([2.0 * second for second in range(1, 11)], cpu=16.0)
    slow = Ten([3.0 * second for second in range(1, 11)], cpu=24.0)
    lives = [Life(short, long), Life(long, short), Life(short, long), Life(slow, short)]

    text = first_requests.report(lives)

    assert "1.17 (1.00-1.33)" in text
    assert "p99, right after Ready / steady, by pairs of starts: 1.17, at most 1.2 wanted: met" in text
    assert "p99 over all requests: 30.00 s right after Ready, 20.00 s in steady state" in text

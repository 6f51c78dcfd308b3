"""Are the first requests slower? Ten at once right after Ready, against ten at once in steady state.

Each worker that is started answers three tens: the first, one that is not counted, one in steady state. All have the
same text and voice and different seeds, so speech of different lengths: a length that is new costs PyTorch some
preparation whenever it comes, and is not what is asked here. The tens of one start are the first, the tens of the next
one are in steady state and the other way round, so every pair of starts compares the same twenty requests.

Ten at once wait for each other, as the engine speaks one at a time: the slowest has waited for all ten.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._figures import percentile, ratios, spread
from benchmarks._models import small
from benchmarks._requests import REQUESTS, Ten, engine_pid, ten_at_once
from benchmarks._rounds import choose_rounds, progress
from benchmarks._serving import staged_options, worker
from benchmarks._table import goal, machine, table
from cosyvoice_worker.server import local

EARLY_SEED, BETWEEN_SEED, LATE_SEED = 0, REQUESTS, 2 * REQUESTS
LOAD_SECONDS = 600
READY_POLL_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Life:
    """Ten requests right after Ready, and ten in steady state, of one worker."""

    first: Ten
    steady: Ten


def main() -> None:
    """Measure and print."""
    starts = 2 * choose_rounds(__doc__, full=5, quick=1)
    with small() as model, tempfile.TemporaryDirectory() as scratch:
        local.prepare(model, Path(scratch), "cpu", "auto", LOAD_SECONDS)
        lives = []
        for number in range(starts):
            progress(f"start {number + 1} of {starts}")
            lives.append(measure(Path(scratch), swapped=number % 2 == 1))
    print(report(lives))


def measure(root: Path, *, swapped: bool) -> Life:
    """One worker's life; `swapped` gives it as the first ten what another has in steady state."""
    early, late = (LATE_SEED, EARLY_SEED) if swapped else (EARLY_SEED, LATE_SEED)
    with worker(staged_options(root)) as (server, api):
        server.seconds_until("/health", READY_POLL_SECONDS)
        engine = engine_pid(server.port)
        first = ten_at_once(api, engine, early)
        ten_at_once(api, engine, BETWEEN_SEED)
        return Life(first, ten_at_once(api, engine, late))


def report(lives: Sequence[Life]) -> str:
    """The table of what ten requests took, compared by pairs of starts, and the goal."""
    measures: Mapping[str, Callable[[Ten], float]] = {
        "p50, s": lambda ten: percentile(ten.latencies, 0.5),
        "p90, s": lambda ten: percentile(ten.latencies, 0.9),
        "p99, s": lambda ten: percentile(ten.latencies, 0.99),
        "engine's CPU for all, s": lambda ten: ten.cpu,
    }
    rows = [_row(name, [(of(life.first), of(life.steady)) for life in lives]) for name, of in measures.items()]
    first = percentile([latency for life in lives for latency in life.first.latencies], 0.99)
    steady = percentile([latency for life in lives for latency in life.steady.latencies], 0.99)
    p99 = measures["p99, s"]
    by_pair = spread(_by_pair([(p99(life.first), p99(life.steady)) for life in lives]))
    return "\n".join(
        (
            f"{machine()}; the tiny model, {len(lives)} starts; median (smallest-largest)",
            "",
            table(("ten at once", "right after Ready", "steady state", "first / steady"), rows),
            "",
            f"p99 over all requests: {first:.2f} s right after Ready, {steady:.2f} s in steady state",
            goal("p99, right after Ready / steady, by pairs of starts", by_pair.median, 1.2),
            goal("p99, right after Ready / steady, over all requests", first / steady, 1.2),
        )
    )


def _row(name: str, values: Sequence[tuple[float, float]]) -> list[str]:
    first, steady = zip(*values, strict=True)
    return [name, spread(first).text(), spread(steady).text(), spread(_by_pair(values)).text()]


def _by_pair(values: Sequence[tuple[float, float]]) -> list[float]:
    """First by steady, for each two starts: their requests are the same. Raises ValueError for an odd number."""
    first = [one + other for (one, _), (other, _) in zip(values[::2], values[1::2], strict=True)]
    steady = [one + other for (_, one), (_, other) in zip(values[::2], values[1::2], strict=True)]
    return ratios(first, steady)


if __name__ == "__main__":
    main()

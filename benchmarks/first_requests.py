"""Are the first requests slower? Ten at once right after Ready, against ten at once in steady state.

Both of the same worker, one start after another: the first ten, ten more that are not counted, and then the ten that
are. The same texts, seeds and voice each time. Ten at once wait for each other, as the engine speaks one at a time:
the slowest of them is the time that all ten take.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._figures import percentile, ratios, spread
from benchmarks._models import small
from benchmarks._requests import Ten, engine_pid, ten_at_once
from benchmarks._rounds import choose_rounds, progress
from benchmarks._serving import staged_options, worker
from benchmarks._table import goal, machine, table
from cosyvoice_worker.server import local

LOAD_SECONDS = 600
READY_POLL_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Pair:
    """Ten requests right after Ready, and ten in steady state, of one worker."""

    first: Ten
    steady: Ten


def main() -> None:
    """Measure and print."""
    rounds = choose_rounds(__doc__, full=10, quick=2)
    with small() as model, tempfile.TemporaryDirectory() as scratch:
        local.prepare(model, Path(scratch), "cpu", "auto", LOAD_SECONDS)
        pairs = []
        for number in range(rounds):
            progress(f"start {number + 1} of {rounds}")
            pairs.append(measure(Path(scratch)))
    print(report(pairs))


def measure(root: Path) -> Pair:
    """One worker's life."""
    with worker(staged_options(root)) as (server, api):
        server.seconds_until("/health", READY_POLL_SECONDS)
        engine = engine_pid(server.port)
        first = ten_at_once(api, engine)
        ten_at_once(api, engine)
        return Pair(first, ten_at_once(api, engine))


def report(pairs: Sequence[Pair]) -> str:
    """The table of percentiles, over all requests and start by start, and the goal."""
    rows = [_row(name, share, pairs) for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))]
    rows.append(_cells("engine's CPU for all", [pair.first.cpu for pair in pairs], [pair.steady.cpu for pair in pairs]))
    head = ("latency of ten at once", "right after Ready, s", "steady, s", "first / steady by start")
    p99 = _pooled(pairs, 0.99)
    return "\n".join(
        (
            f"{machine()}; the tiny model, {len(pairs)} starts; median (smallest-largest) of the starts",
            "",
            table(head, rows),
            "",
            f"p99 over all requests: {p99[0]:.2f} s right after Ready, {p99[1]:.2f} s in steady state",
            goal("p99, right after Ready / steady, by start", spread(ratios(*_by_start(pairs, 0.99))).median, 1.2),
            goal("p99, right after Ready / steady, over all requests", p99[0] / p99[1], 1.2),
        )
    )


def _row(name: str, share: float, pairs: Sequence[Pair]) -> list[str]:
    return _cells(name, *_by_start(pairs, share))


def _cells(name: str, first: Sequence[float], steady: Sequence[float]) -> list[str]:
    return [name, spread(first).text(), spread(steady).text(), spread(ratios(first, steady)).text()]


def _by_start(pairs: Sequence[Pair], share: float) -> tuple[list[float], list[float]]:
    """The percentile of each start, right after Ready and in steady state."""
    first = [percentile(pair.first.latencies, share) for pair in pairs]
    return first, [percentile(pair.steady.latencies, share) for pair in pairs]


def _pooled(pairs: Sequence[Pair], share: float) -> tuple[float, float]:
    first = [latency for pair in pairs for latency in pair.first.latencies]
    steady = [latency for pair in pairs for latency in pair.steady.latencies]
    return percentile(first, share), percentile(steady, share)


if __name__ == "__main__":
    main()

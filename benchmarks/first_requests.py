"""Are the first requests slower? Ten at once right after Ready, against ten at once in steady state.

Both of the same worker, one start after another: the first ten, ten more that are not counted, and then the ten that
are. The same texts, seeds and voice each time. Ten at once wait for each other, as the engine speaks one at a time:
the slowest of them is the time that all ten take.
"""

from __future__ import annotations

import http.client
import json
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks._figures import percentile, ratios, spread
from benchmarks._models import VOICE, small
from benchmarks._rounds import choose_rounds, progress
from benchmarks._serving import HOST, PATIENCE_SECONDS, staged_options, worker
from benchmarks._table import goal, machine, table
from cosyvoice_worker.server import local

REQUESTS = 10
TEXT = "The first ones shall not wait longer."
LOAD_SECONDS = 600
READY_POLL_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Pair:
    """Latencies of ten requests in seconds, right after Ready and in steady state, of one worker."""

    first: Sequence[float]
    steady: Sequence[float]


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
        first = at_once(api)
        at_once(api)
        return Pair(first, at_once(api))


def at_once(port: int) -> list[float]:
    """Ten requests at the same moment: the seconds until each one's last byte. Raises RuntimeError if one fails."""
    begin = threading.Barrier(REQUESTS)

    def ask(seed: int) -> float:
        connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE_SECONDS)
        body = json.dumps({"input": TEXT, "voice": VOICE, "seed": seed})
        begin.wait()
        start = time.perf_counter()
        connection.request("POST", "/v1/audio/speech", body, {"content-type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        seconds = time.perf_counter() - start
        connection.close()
        if response.status != http.HTTPStatus.OK:
            raise RuntimeError(f"a request was answered with {response.status}: {answer.decode(errors='replace')}")
        return seconds

    with ThreadPoolExecutor(REQUESTS) as pool:
        return list(pool.map(ask, range(REQUESTS)))


def report(pairs: Sequence[Pair]) -> str:
    """The table of percentiles, over all requests and start by start, and the goal."""
    rows = [_row(name, share, pairs) for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))]
    head = ("latency of ten at once", "right after Ready, s", "steady, s", "first / steady by start")
    p99 = _pooled(pairs, 0.99)
    return "\n".join(
        (
            f"{machine()}; the tiny model, {len(pairs)} starts; median (smallest-largest) of the starts",
            "",
            table(head, rows),
            "",
            f"p99 over all requests: {p99[0]:.2f} s right after Ready, {p99[1]:.2f} s in steady state",
            goal("p99, right after Ready / steady, by start", spread(_by_start(pairs, 0.99)).median, 1.2),
            goal("p99, right after Ready / steady, over all requests", p99[0] / p99[1], 1.2),
        )
    )


def _row(name: str, share: float, pairs: Sequence[Pair]) -> list[str]:
    first = spread([percentile(pair.first, share) for pair in pairs])
    steady = spread([percentile(pair.steady, share) for pair in pairs])
    return [name, first.text(), steady.text(), spread(_by_start(pairs, share)).text()]


def _by_start(pairs: Sequence[Pair], share: float) -> list[float]:
    return ratios([percentile(pair.first, share) for pair in pairs], [percentile(pair.steady, share) for pair in pairs])


def _pooled(pairs: Sequence[Pair], share: float) -> tuple[float, float]:
    first = [latency for pair in pairs for latency in pair.first]
    steady = [latency for pair in pairs for latency in pair.steady]
    return percentile(first, share), percentile(steady, share)


if __name__ == "__main__":
    main()

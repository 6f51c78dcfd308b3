"""From exec to the first answered probe, and from exec to Ready: a staged worker, and servers that import first.

The worker answers probes while it is still importing, and its engine is a process of its own. "hello" is Starlette and
uvicorn alone; "one process" imports PyTorch too, loads and warms up the same model, and only then listens.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._figures import ratios, spread
from benchmarks._models import small
from benchmarks._rounds import alternate, choose_rounds
from benchmarks._serving import free_port, serving, staged_options, worker
from benchmarks._table import goal, machine, table
from cosyvoice_worker.server import local

READY_POLL_SECONDS = 0.02
LOAD_SECONDS = 600
STAGED, UNSTAGED, HELLO, ONE_PROCESS = "worker", "worker --model DIR", "hello", "one process"


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds from exec to the first 200 of each probe; `ready` is None for a server that has nothing to load."""

    ping: float
    ready: float | None


def main() -> None:
    """Measure and print."""
    rounds = choose_rounds(__doc__, full=20, quick=3)
    with small() as model, tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        local.prepare(model, root, "cpu", "auto", LOAD_SECONDS)
        starts = alternate(
            rounds,
            {
                STAGED: lambda: start_worker(staged_options(root)),
                UNSTAGED: lambda: start_worker(["--model", str(model)]),
                HELLO: lambda: Start(start_plain([]), None),
                ONE_PROCESS: lambda: _both(start_plain([str(model)])),
            },
        )
    print(report(starts))


def start_worker(options: Sequence[str]) -> Start:
    """One start of the worker."""
    with worker(options) as (server, _):
        return Start(server.seconds_until("/ping"), server.seconds_until("/health", READY_POLL_SECONDS))


def start_plain(arguments: Sequence[str]) -> float:
    """One start of the plain server: seconds to its first answer."""
    port = free_port()
    with serving("benchmarks._plain_server", [str(port), *arguments], port) as server:
        return server.seconds_until("/ping")


def report(starts: Mapping[str, Sequence[Start]]) -> str:
    """The table, with ratios round by round to the staged worker, and the goal."""
    ours = starts[STAGED]
    rows = [[name, *_cells(ours, others)] for name, others in starts.items()]
    head = ("server", "exec to /ping, s", "worker / it", "exec to Ready, s", "worker / it")
    return "\n".join(
        (
            f"{machine()}; the tiny model, {len(ours)} rounds; median (smallest-largest)",
            "",
            table(head, rows),
            "",
            goal("exec to the first /ping, seconds", spread([start.ping for start in ours]).median, 0.3, 3),
        )
    )


def _both(seconds: float) -> Start:
    return Start(seconds, seconds)


def _cells(ours: Sequence[Start], others: Sequence[Start]) -> list[str]:
    pings, readies = [start.ping for start in others], [start.ready for start in others if start.ready is not None]
    cells = [spread(pings).text(3), spread(ratios([start.ping for start in ours], pings)).text()]
    if not readies:
        return [*cells, "-", "-"]
    our_readies = [start.ready for start in ours if start.ready is not None]
    return [*cells, spread(readies).text(), spread(ratios(our_readies, readies)).text()]


if __name__ == "__main__":
    main()

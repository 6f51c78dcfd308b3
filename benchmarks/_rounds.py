"""What every benchmark does: read its few options, measure ways side by side, say how far it is."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


def alternate(rounds: int, ways: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Each way's results, round by round; every second round goes backwards, so that none is always the first."""
    results: dict[str, list[T]] = {name: [] for name in ways}
    for number in range(rounds):
        order = list(ways) if number % 2 == 0 else list(ways)[::-1]
        for name in order:
            progress(f"round {number + 1} of {rounds}: {name}")
            results[name].append(ways[name]())
    return results


def progress(text: str) -> None:
    """To standard error, so that standard output holds the table alone."""
    print(f"  {text}", file=sys.stderr, flush=True)


def choose_rounds(description: str | None, *, full: int, quick: int) -> int:
    """The number of rounds that the command line asks for: --quick, --rounds N, or `full`.

    From then on SIGTERM ends the benchmark as Ctrl-C does: nothing that it made stays behind.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help=f"{quick} rounds: a look, no figure to rely on")
    parser.add_argument("--rounds", type=int, metavar="N", help=f"how often each way is measured (default {full})")
    arguments = parser.parse_args()
    rounds: int = arguments.rounds or (quick if arguments.quick else full)
    if rounds < 1:
        parser.error(f"--rounds {rounds}: at least 1 round is needed")
    signal.signal(signal.SIGTERM, _end)
    return rounds


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)

"""Runs histories by their seeds: `python -m tests.unit.operator.simulation FIRST [LAST]`. One alone is told in full."""

from __future__ import annotations

import asyncio
import sys

from tests.unit.operator.simulation.simulate import HistoryFailedError, run_seed


def main(first: int, last: int) -> int:
    """How many of the seeds from `first` to `last` broke a rule."""
    failed = 0
    with asyncio.Runner() as loop:
        for seed in range(first, last + 1):
            try:
                world = run_seed(seed, loop)
            except HistoryFailedError as error:
                failed += 1
                print(error)  # noqa: T201 - a command line
            else:
                if first == last:
                    print(world.story())  # noqa: T201 - a command line
    print(f"seeds {first} to {last}: {failed} failed")  # noqa: T201 - a command line
    return failed


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(numbers[0], numbers[-1]) > 0)

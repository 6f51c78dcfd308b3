"""Thousands of random histories of one model: users, cluster and operator at their worst, each by its seed.

Every history runs the real Reconciler against an API server, a scheduler, kubelets, workers and a Deployment controller
in memory, on a clock of its own. After each of the operator's writes the rules of `invariants` have to hold; when
events stop, the system has to come to rest, at the right place (`ending`). Nothing is random but the seed:

    python -m tests.unit.operator.simulation SEED    (with operator, worker and . on PYTHONPATH)

tells a history in full.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from tests.unit.operator.simulation.simulate import run_seed

AT_A_TIME = 100
USUAL, MANY = 200, 10_000


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """The operator's own log: a line for each of a million events."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def seeds(first: int, count: int) -> pytest.MarkDecorator:
    """A test for each hundred; its name says which seeds it lives through."""
    starts = range(first, first + count, AT_A_TIME)
    return pytest.mark.parametrize("first", starts, ids=[f"seeds {n} to {n + AT_A_TIME - 1}" for n in starts])


@seeds(0, USUAL)
def test_histories_keep_every_rule(first: int) -> None:
    live_through(first)


@pytest.mark.long
@seeds(USUAL, MANY)
def test_many_more_histories_keep_every_rule(first: int) -> None:
    live_through(first)


def test_a_seed_makes_the_same_history_every_time() -> None:
    with asyncio.Runner() as loop:
        stories = {run_seed(4, loop).story() for _ in range(2)}

    assert len(stories) == 1


def live_through(first: int) -> None:
    with asyncio.Runner() as loop:
        for seed in range(first, first + AT_A_TIME):
            run_seed(seed, loop)

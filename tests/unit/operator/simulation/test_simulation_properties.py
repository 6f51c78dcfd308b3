"""The same worlds, with histories that hypothesis makes up: one that breaks a rule is shrunk to what breaks it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.operator.simulation.actions import Action
from tests.unit.operator.simulation.fates import Fate
from tests.unit.operator.simulation.history import STRATEGIES, VERSIONS, WAITS, History
from tests.unit.operator.simulation.simulate import run
from tests.unit.operator.simulation.world import Pace

SLOW = [HealthCheck.too_slow]


@pytest.fixture(autouse=True, scope="module")
def silence() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def actions(what: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Action]:
    return st.builds(Action, st.just(what), st.tuples(*arguments), st.sampled_from(sorted(set(WAITS))))


def spec(path: str, *values: Any) -> st.SearchStrategy[Action]:
    return actions("spec", st.just(path), st.sampled_from(values))


INDEX = st.integers(0, 3)
OF_PODS = st.lists(st.sampled_from([fate.value for fate in Fate]), min_size=1, max_size=2).map(tuple)
ACTIONS = st.one_of(
    spec("version", *VERSIONS),
    spec("worker.replicas", 0, 1, 2, 3),
    spec("paused", False, True),
    spec("rollout.strategy", *sorted(set(STRATEGIES))),
    spec("rollout.historyLimit", 0, 1, 5),
    spec("rollout.automaticRollback", True, False),
    spec("rollout.onNoCapacity", "Wait", "Replace", "Fail"),
    actions("retry", st.sampled_from([None, "one", "two"])),
    actions("pin", st.integers(-1, 3)),
    actions("unpin"),
    actions("fault", st.integers(0, 8), st.booleans(), st.booleans()),
    actions("interrupt", st.integers(0, 16), st.just("spec"), st.just("version"), st.sampled_from(VERSIONS)),
    actions("fate", st.sampled_from(VERSIONS), OF_PODS),
    actions("slots", st.sampled_from(["node1", "node2"]), st.integers(0, 3)),
    actions("quota", st.sampled_from([None, 1, 2, 3])),
    actions("node", st.sampled_from(["node1", "node2"]), st.booleans()),
    actions("crash", INDEX),
    actions("lose", INDEX, st.just("Evicted")),
    actions("delete-pod", INDEX),
    actions("delete", st.sampled_from(["Deployment", "Service"])),
    actions("restart-rollout", st.sampled_from(["1", "2"])),
    actions("upgrade", st.sampled_from(["worker:2", "worker:3"])),
    actions("deaf", st.sampled_from([10.0, 400.0])),
    actions("restart"),
)
HISTORIES = st.builds(
    History,
    fates=st.tuples(*(st.tuples(st.just(version), OF_PODS) for version in VERSIONS)),
    spec=st.tuples(st.tuples(st.just("worker.replicas"), st.integers(1, 3))),
    actions=st.lists(ACTIONS, max_size=8).map(tuple),
    echo=st.booleans(),
    pace=st.sampled_from(Pace),
    healed=st.booleans(),
)


def live_through(history: History) -> None:
    with asyncio.Runner() as loop:
        run(history, loop)


@settings(max_examples=30, suppress_health_check=SLOW)
@given(history=HISTORIES)
def test_any_history_keeps_every_rule(history: History) -> None:
    live_through(history)


@pytest.mark.long
@settings(max_examples=1000, suppress_health_check=SLOW)
@given(history=HISTORIES)
def test_many_more_keep_every_rule(history: History) -> None:
    live_through(history)

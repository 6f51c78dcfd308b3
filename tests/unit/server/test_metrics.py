"""What is there before anything happens, and what the outcomes are that the worker is to blame for."""

from __future__ import annotations

import inspect

from prometheus_client import CollectorRegistry

from cosyvoice_worker.engine import phases
from cosyvoice_worker.metrics import FAULTS, LOAD_PHASES, Metrics
from cosyvoice_worker.server import problems
from cosyvoice_worker.server.problems import Problem

ARGUMENTS = {"bool": True, "int": 1, "float": 1.0, "str": "a", "Sequence[str]": ["a"]}


def test_series_are_there_before_the_first_event():
    """Or Prometheus would see no increase when it comes."""
    registry = CollectorRegistry()
    Metrics(registry)

    for outcome in ("ok", "queue-full", *FAULTS):
        assert registry.get_sample_value("cosyvoice_requests_total", {"outcome": outcome}) == 0.0
    for phase in LOAD_PHASES:
        assert registry.get_sample_value("cosyvoice_load_duration_seconds_count", {"phase": phase}) == 0.0


def test_load_durations_have_the_buckets_that_alerts_and_panels_ask_for():
    metrics = Metrics(CollectorRegistry())
    (family,) = metrics.load_seconds.collect()

    assert {"5.0", "10.0", "30.0", "60.0", "120.0"} <= {sample.labels.get("le") for sample in family.samples}


def test_the_phases_are_those_that_the_engine_tells():
    assert set(LOAD_PHASES) == {*phases.KEYS.values(), "total"}


def test_a_version_that_takes_over_replaces_the_series_of_the_one_before():
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    before = {"version": "v1", "revision": "a", "digest": None, "device": None, "dtype": None}
    after = {"version": "v2", "revision": "b", "digest": "sha256:1", "device": "cpu", "dtype": "float32"}

    metrics.tell_identity(before)
    metrics.tell_identity(after)

    (family,) = metrics.model_info.collect()
    assert [(sample.labels, sample.value) for sample in family.samples] == [(after, 1.0)]


def test_faults_are_the_problems_that_are_the_workers_own():
    """Those with a status of 500 and above: every kind of problem is made once here."""
    made = [_make(function) for _, function in inspect.getmembers(problems, inspect.isfunction)]

    own = {problem.kind for problem in made if problem.status >= 500} | {problems.synthesis_failed(503, "", "").kind}
    assert own == set(FAULTS)


def _make(function) -> Problem:
    parameters = inspect.signature(function).parameters.values()
    return function(**{parameter.name: ARGUMENTS[parameter.annotation] for parameter in parameters})

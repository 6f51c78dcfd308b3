"""Others write into a model while a pass over it goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cosyvoice_operator import names
from cosyvoice_operator.errors import ConflictError
from cosyvoice_operator.gather import Gatherer
from cosyvoice_operator.publish import Publisher
from cosyvoice_operator.reconcile import Reconciler
from cosyvoice_operator.refusals import Refusals
from cosyvoice_operator.workers import Workers
from tests.unit.operator.builders import POLICY, START, raw_model
from tests.unit.operator.simulation.fake_cluster import FakeCluster
from tests.unit.operator.simulation.operator_process import Answers
from tests.unit.operator.simulation.store import MODEL, NAMESPACE, Object, Store

REQUESTS = 12  # more than come before the status is written


class Nobody:
    """Watches and says nothing."""

    def on_model(self, raw: Object | None) -> None: ...

    def on_write(self, verb: str, raw: Object) -> None: ...

    def on_new_set(self, template: Object, sets: list[Object]) -> None: ...


def one_pass(after_requests: int, **change: Any) -> Object:
    """The model after a pass in which somebody changed it before the request `after_requests`."""
    store = Store(lambda: START, lambda: None)
    store.put(raw_model(MODEL))

    def meddle() -> None:
        model = store.get(names.KIND, MODEL)
        assert model is not None
        store.put({**model, **change, "metadata": {**model["metadata"], "labels": {"team": "speech"}}})

    cluster = FakeCluster(store, Nobody(), lambda _: None, lambda: None)
    reconciler = Reconciler(
        cluster,
        Gatherer(cluster, Workers(Answers(lambda _: None))),
        Publisher(cluster, lambda: START, "test"),
        Refusals(cluster, lambda: 0.0, 300),
        POLICY,
        clock=lambda: START,
    )
    cluster.interruption = (after_requests, meddle)
    asyncio.run(reconciler.reconcile((NAMESPACE, MODEL)))
    model = store.get(names.KIND, MODEL)
    assert model is not None
    return model


@pytest.mark.parametrize("after_requests", range(REQUESTS))
def test_a_label_that_somebody_sets_meanwhile_does_not_spoil_the_pass(after_requests: int) -> None:
    model = one_pass(after_requests)

    assert model["status"]["targetVersion"] == "v1"
    assert model["metadata"]["labels"] == {"team": "speech"}


def test_a_spec_that_somebody_edits_meanwhile_makes_another_pass_necessary() -> None:
    edited = {**raw_model(MODEL)["spec"], "version": "v2"}

    spoiled = 0
    for after_requests in range(1, REQUESTS):
        try:
            one_pass(after_requests, spec=edited)
        except ConflictError:
            spoiled += 1

    assert spoiled > 0

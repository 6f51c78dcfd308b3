"""Workers of a new version that claim to be the old one: nobody is believed what his pod cannot do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from cosyvoice_operator import pins, rollout
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.observed import Container, Ended, Observed, StoredRevision, WorkerStatus
from cosyvoice_operator.served import by_what_is_served
from tests.unit.operator.builders import POLICY, START, model, pod, ready_pod, stored, target_of, workload

V1, V2 = target_of(model()), target_of(model(version="v2"))
SERVED_V1 = Status(active_revision=V1, active_version="v1", last_good_revision=V1, target_revision=V2)
STAGED = Container(ended=Ended(exit_code=0, reason="Completed", finished_at=START))
FORGED = "sha256:" + "6" * 64
STAGER = {"initContainers": [{"name": "stager"}]}


def kept(name: str, spec: dict[str, Any]) -> StoredRevision:
    return replace(stored(name), template={"spec": spec})


@pytest.mark.parametrize(
    ("old", "new", "claimed"),
    [
        ({}, {}, V1),
        (STAGER, {}, V1),
        (STAGER, {**STAGER, "containers": [{"name": "worker", "image": "w:2"}]}, V1),
        (STAGER, STAGER, "nobodys"),
    ],
)
def test_a_pod_that_cannot_serve_what_it_claims_to_is_a_pod_of_its_own_version(
    old: dict[str, Any], new: dict[str, Any], claimed: str
) -> None:
    claim = WorkerStatus(phase="Build", revision=claimed, digest=FORGED)
    liar = pod(V2, "new", version="v2", stage=STAGED, worker=Container(running=True), status=claim)
    observed = by_what_is_served(
        Observed(
            revisions=(kept(V1, old), kept(V2, new)),
            workload=workload(V2, 2, total=3, updated=1),
            pods=(ready_pod(V1, "old-0"), ready_pod(V1, "old-1"), liar),
        )
    )

    decision = rollout.decide(model(SERVED_V1, version="v2"), observed, POLICY, START + timedelta(seconds=601))

    assert [entry.reason for entry in decision.quarantine] == ["ProgressDeadlineExceeded"]
    assert pins.known(observed, V1) is None

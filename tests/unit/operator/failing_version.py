"""A model whose v1 serves and whose v2 fails: what the tests of rollbacks, quarantine and pins look at."""

from __future__ import annotations

from dataclasses import replace as altered
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from cosyvoice_operator import rollout, status
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import Quarantined, Status
from cosyvoice_operator.observed import Container, Ended, Observed
from cosyvoice_operator.rollout import Decision
from tests.unit.operator.builders import (
    POLICY,
    START,
    ended_container,
    model,
    pod,
    ready_pod,
    serving,
    stored,
    target_of,
    workload,
)

V1, V2, V3 = (target_of(model(version=version)) for version in ("v1", "v2", "v3"))
SERVED_V1 = Status(
    active_revision=V1, active_version="v1", last_good_revision=V1, target_revision=V1, target_version="v1"
)
BOTH = (stored(V2, version="v2"), stored(V1, age=60))
OLD = (ready_pod(V1, "old-0"), ready_pod(V1, "old-1"))
CORRUPT = ended_container(65, reason="TruncatedFile", file="llm.pt", message="llm.pt is cut off")
CRASHED = ended_container(139, restarts=3)
NOTHING = Container()
TOLD = "llm.pt is cut off (pod new, node node1)"
STAGED = Container(ended=Ended(exit_code=0, reason="Completed", finished_at=START))
LATER = START + timedelta(minutes=20)


def asked(before: Status, *, retry: str | None = None, pin: str | None = None, **spec: Any) -> Model:
    return altered(model(status=before, **{"version": "v2", **spec}), retry=retry, rollback_to=pin)


def trying(stage: Container = CORRUPT, worker: Container = NOTHING) -> Observed:
    """The surge pod of v2 beside the pods of v1."""
    new = pod(V2, "new", version="v2", stage=stage, worker=worker)
    return Observed(revisions=BOTH, workload=workload(V2, 2, total=3, updated=1), pods=(*OLD, new))


def back(**fields: Any) -> Observed:
    """v1 serves again at full count."""
    return serving(V1, **{"revisions": BOTH, **fields})


def decide(wanted: Model, observed: Observed, now: datetime = START) -> Decision:
    return rollout.decide(wanted, observed, POLICY, now)


def after(wanted: Model, observed: Observed, now: datetime = START) -> Status:
    """The status that a pass writes."""
    return status.report(wanted, observed, decide(wanted, observed, now), now)


def condemned(**entry: Any) -> Status:
    """The status of a model whose v2 is in quarantine."""
    fields = {
        "revision": V2,
        "version": "v2",
        "reason": "TruncatedFile",
        "message": TOLD,
        "since": "2026-11-30T12:00:00Z",
    }
    return replace(SERVED_V1, target_revision=V2, quarantine=(Quarantined(**{**fields, **entry}),))

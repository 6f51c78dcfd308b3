"""Pods of v1's template and a model that asks for v2, for the tests of where a version runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs

from cosyvoice_operator import manifests, revision, rollout, status
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.observed import Live, Observed, Pod, StoredRevision, Swap, WorkerStatus
from cosyvoice_operator.rollout import Decision
from cosyvoice_operator.served import by_what_is_served
from cosyvoice_operator.termination import Termination
from tests.unit.operator.builders import (
    POLICY,
    START,
    full,
    model,
    ready_pod,
    stored,
    target_of,
)

HOT: dict[str, Any] = {"rollout": {"strategy": "HotSwap"}}
AUTO: dict[str, Any] = {"rollout": {"strategy": "Auto"}}
V1, V2 = target_of(model(**HOT)), target_of(model(version="v2", **HOT))
SERVED_V1 = Status(active_revision=V1, active_version="v1", last_good_revision=V1, target_revision=V1, reason="Ready")


def kept(version: str, **spec: Any) -> StoredRevision:
    """A revision as the operator stores it."""
    asked = model(version=version, **{**HOT, **spec})
    name = target_of(asked)
    template = manifests.pod_template("narrator", name, revision.resolve(asked.spec, POLICY))
    return replace(stored(name, version=version), template=template)


def labelled(name: str, serves: str = V1, swap: Swap | None = None, **fields: Any) -> Pod:
    """A ready pod of v1's template."""
    return ready_pod(V1, name, status=WorkerStatus(phase="Ready", revision=serves, swap=swap), **fields)


def seen(*pods: Pod, live: Live | None = None, revisions: tuple[StoredRevision, ...] = (), **fields: Any) -> Observed:
    """v1's template in the Deployment, which is complete as far as Kubernetes knows."""
    lives = () if live is None else (live,)
    defaults: dict[str, Any] = {"revisions": (kept("v1"), *revisions), "workload": full(V1), "lives": lives}
    return by_what_is_served(Observed(pods=pods, **{**defaults, **fields}))


def asks(previous: Status = SERVED_V1, version: str = "v2", **spec: Any) -> Model:
    return model(status=previous, version=version, **{**HOT, **spec})


def decide(asked: Model, observed: Observed) -> Decision:
    return rollout.decide(asked, observed, POLICY, START)


def after(asked: Model, observed: Observed) -> Status:
    """The status that the pass writes."""
    return status.report(asked, observed, decide(asked, observed), START)


def trial(state: str, *, tries: int = 0, room: bool = False, reason: str = "MissingTensor") -> tuple[Model, Observed]:
    """v2 is being tried by pod a, which says `state`."""
    said = Swap(order=f"{V2}.7", state=state, room=room, failure=Termination(reason=reason, message="why"))
    serves = V2 if state == "Switched" else V1
    pods = (labelled("a", serves, said, order=f"{V2}.7.1"), labelled("b"))
    begun = rollout.RolloutRecord(
        revision=V2,
        strategy="HotSwap",
        attempt=7,
        tries=tries,
        started_at="2026-11-30T11:59:00Z",
        serving_since="2026-11-30T11:59:50Z" if state == "Switched" else None,
    )
    previous = structs.replace(SERVED_V1, rollout=begun)
    live = Live(template=V1, current=V1, candidate=V2)
    return asks(previous), seen(*pods, live=live, revisions=(kept("v2"),))

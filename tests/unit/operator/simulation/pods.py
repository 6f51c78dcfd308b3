"""What a kubelet knows of one pod, and the status that it reports of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cosyvoice_operator import names
from tests.unit.operator.simulation.fates import End
from tests.unit.operator.simulation.store import Object, timestamp


@dataclass(frozen=True, slots=True)
class Document:
    """A model.json: which revision a worker is to load."""

    revision: str
    version: str
    pin: str | None = None  # the digest that it is held to


@dataclass
class Container:
    """How often a container was started again, how often it ended without a long run since, and how it ended last."""

    restarts: int = 0
    ends_in_a_row: int = 0
    end: End | None = None
    ended_at: datetime | None = None

    def ends(self, end: End, now: datetime) -> None:
        self.end, self.ended_at = end, now
        self.ends_in_a_row += 1


@dataclass
class Swap:
    """The order that a worker took up last. `due`: when it gets further; None where it does not."""

    order: str
    document: Document
    state: str = "Staging"
    due: datetime | None = None
    end: End | None = None
    room: bool = False
    digest: str | None = None


@dataclass
class Run:
    """`place`: mounting, staging, stage-backoff, loading, worker-backoff or ready. `due`: when it leaves that.

    `mounted` is the pod's configuration as its kubelet last brought it, with `order` in it; `refresh_at` is when the
    kubelet brings a newer one.
    """

    ordinal: int  # of the pod among those of its version
    place: str = "mounting"
    since: datetime | None = None
    due: datetime | None = None
    stage: Container = field(default_factory=Container)
    worker: Container = field(default_factory=Container)
    mounted: tuple[Document, ...] = ()
    live: Object = field(default_factory=dict)  # the texts of those that may change
    order: str | None = None
    refresh_at: datetime | None = None
    staged: Document | None = None  # by `stage`, when the pod began
    has: set[str] = field(default_factory=set)  # every revision that was staged since
    loads: Document | None = None  # what the worker loads, or has loaded
    digest: str | None = None  # of what was staged last
    swap: Swap | None = None

    @property
    def serves(self) -> str | None:
        """The revision that answers requests."""
        return self.loads.revision if self.place == "ready" and self.loads is not None else None


def status_of(pod: Object, run: Run, *, up: bool, waiting: str = "PodInitializing") -> Object:
    """What is known of the pod: on a node that is not `up`, nothing is ready. `waiting`: why `stage` has not begun."""
    since = timestamp(run.since) if run.since else None
    conditions = {entry["type"]: entry for entry in pod["status"].get("conditions", ())}
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") != "True":
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": since}
    is_ready = "True" if run.place == "ready" and up else "False"
    ready = conditions.get("Ready", {})
    if ready.get("status") != is_ready:
        ready = {"type": "Ready", "status": is_ready, "lastTransitionTime": since}
    worker_waits = "PodInitializing"
    return {
        "phase": "Running" if run.place in {"loading", "worker-backoff", "ready"} else "Pending",
        "podIP": "10.0.0.1",
        "conditions": [scheduled, ready],
        "initContainerStatuses": [
            _container(names.STAGE_CONTAINER, run.stage, since if run.place == "staging" else None, waiting)
        ],
        "containerStatuses": [
            _container(
                names.WORKER_CONTAINER, run.worker, since if run.place in {"loading", "ready"} else None, worker_waits
            )
        ],
    }


def _container(name: str, container: Container, running_since: str | None, waiting: str) -> Object:
    """`running_since` None: it does not run."""
    end, when = container.end, container.ended_at
    status: Object = {"name": name, "restartCount": container.restarts}
    if end is None or when is None:
        state: dict[str, Any] = {"waiting": {"reason": waiting}}
        return {**status, "state": {"running": {"startedAt": running_since}} if running_since else state}
    phase = "Stage" if name == names.STAGE_CONTAINER else "Map"
    ended = {"exitCode": end.code, "reason": end.kubelet, "message": end.message(phase), "finishedAt": timestamp(when)}
    if running_since:
        return {**status, "state": {"running": {"startedAt": running_since}}, "lastState": {"terminated": ended}}
    if end.code == 0:
        return {**status, "state": {"terminated": ended}}
    return {**status, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}

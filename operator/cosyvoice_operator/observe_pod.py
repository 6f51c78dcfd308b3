"""Reads one pod as the API server returned it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cosyvoice_operator import names, termination
from cosyvoice_operator.observed import EVICTED, Container, Ended, Pod, WorkerStatus

Object = Mapping[str, Any]

# A worker pod is to run for ever: it is over only where its node or the cluster ended it, however its containers did.
_OVER = frozenset({"Failed", "Succeeded"})
# What such a pod is lost to as long as nothing tells more.
UNTOLD = _OVER | {"TerminationByKubelet"}


def read_pod(
    raw: Object,
    *,
    mount_failure: str | None = None,
    eviction: str | None = None,
    node_down: str | None = None,
    worker_status: WorkerStatus | None = None,
) -> Pod:
    """The pod, with what the kubelet's events, its node and the worker itself said about it."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    scheduled, ready = conditions.get("PodScheduled", {}), conditions.get("Ready", {})
    is_ready = ready.get("status") == "True"
    over = status.get("phase") in _OVER
    disruption = conditions.get("DisruptionTarget", {})
    evicted = None if eviction is None else EVICTED
    why_over = status.get("reason") or evicted or disruption.get("reason") or status.get("phase")
    over_words = status.get("message") or disruption.get("message") or eviction
    return Pod(
        name=metadata["name"],
        revision=labels.get(names.LABEL_REVISION, ""),
        version=labels.get(names.LABEL_VERSION, ""),
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        node=raw["spec"].get("nodeName"),
        address=status.get("podIP"),
        scheduled=_time(scheduled.get("lastTransitionTime")) if scheduled.get("status") == "True" else None,
        unschedulable=scheduled.get("message") if scheduled.get("reason") == "Unschedulable" else None,
        lost=why_over if over else None,
        lost_message=termination.clean(over_words) or "" if over else "",
        ready=is_ready,
        ready_since=_time(ready.get("lastTransitionTime")) if is_ready else None,
        unready_since=None if is_ready else _time(ready.get("lastTransitionTime")),
        stage=_container(status.get("initContainerStatuses"), names.STAGE_CONTAINER),
        worker=_container(status.get("containerStatuses"), names.WORKER_CONTAINER),
        others=_others(status),
        node_down=node_down,
        mount_failure=mount_failure,
        order=annotations.get(names.ANNOTATION_SWAP) or None,
        status=worker_status,
    )


def _others(status: Object) -> tuple[tuple[str, Container], ...]:
    """All but the two that a version is judged by."""
    statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    own = {names.STAGE_CONTAINER, names.WORKER_CONTAINER}
    return tuple((raw["name"], _container(statuses, raw["name"])) for raw in statuses if raw["name"] not in own)


def _container(statuses: list[Object] | None, name: str) -> Container:
    """The container `name`; an empty one while the kubelet has not reported it."""
    raw = next((status for status in statuses or () if status["name"] == name), None)
    if raw is None:
        return Container()
    state, last = raw.get("state") or {}, raw.get("lastState") or {}
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or last.get("terminated")
    return Container(
        running="running" in state,
        waiting_reason=waiting.get("reason"),
        waiting_message=termination.clean(waiting.get("message")),
        restarts=raw.get("restartCount", 0),
        ended=None if ended is None else _ended(ended),
    )


def _ended(raw: Object) -> Ended:
    return Ended(
        exit_code=raw["exitCode"],
        reason=raw.get("reason") or "Error",
        finished_at=_time(raw.get("finishedAt")),
        said=termination.parse(raw.get("message") or ""),
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None

"""The condition MemoryHighApplied: what the kernels have where the workers run, never what was asked for. Pure.

True      every worker that answers has the value
False     a worker has another one, or none
Unknown   no worker could be asked, or its kernel has no such thing (cgroup v1)

Only values that stay the same from one look to the next are told, so that looking writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from cosyvoice_operator import quantity, times
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.conditions import MEMORY_HIGH_APPLIED, Wanted
from cosyvoice_operator.observed import MemoryHigh, Pod
from cosyvoice_operator.pin import Wanted as WantedRevision

APPLIED = "Applied"
NOT_APPLIED = "NotApplied"
NOT_SUPPORTED = "NotSupported"
NOT_REPORTED = "NotReported"

MAX_ASKED = 16
# The node agent looks every few seconds, and no watch tells when it has set the value.
LOOK_AGAIN_SECONDS = 5.0
LOOK_AGAIN_FOR = timedelta(minutes=2)

_ROUTES = {
    "Delegated": "on the engine's own cgroup, by the worker",
    "NodeAgent": "on the worker container, by the node agent",
    "Other": "on the worker container, by something else on the node (the kubelet, an NRI plugin)",
}


def pods_to_ask(model: Model, pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Those of the target's `pods` whose kernel is worth a look: none where there is no wish."""
    if model.spec.worker.memory_high is None:
        return ()
    reachable = [pod for pod in pods if pod.address and pod.worker.running and not pod.lost]
    return tuple(sorted(reachable, key=lambda pod: pod.name)[:MAX_ASKED])


def conditions_of(model: Model, wanted: WantedRevision, pods: Iterable[Pod]) -> tuple[Wanted, ...]:
    """The condition, where the spec wishes for memory.high; nothing where not. `pods` are the wanted revision's."""
    high = model.spec.worker.memory_high
    if high is None:
        return ()
    asked = pods_to_ask(model, pods)
    if any(pod.status is None for pod in asked) and (before := _before(model, wanted)):
        return (before,)
    told = [(pod, pod.status.memory_high) for pod in asked if pod.status is not None]
    if not told:
        return (_unknown(NOT_REPORTED, f"no worker of {wanted.version} has told yet"),)
    # A pinned revision was made with a wish of its own.
    wishes = {said.wanted for _, said in told if said is not None}
    return (_of(told, quantity.canonical(str(max(wishes)) if wishes else high)),)


def look_again(due: float | None, after: Status, now: datetime) -> float | None:
    """`due`, the seconds until the next pass, or sooner: for a while, the value may yet be set."""
    condition = after.condition(MEMORY_HIGH_APPLIED)
    if condition is None or condition.status == "True":
        return due
    since = times.read(condition.last_transition_time)
    if since is None or now - since > LOOK_AGAIN_FOR:
        return due
    return LOOK_AGAIN_SECONDS if due is None else min(due, LOOK_AGAIN_SECONDS)


def _of(told: list[tuple[Pod, MemoryHigh | None]], high: str) -> Wanted:
    for pod, said in told:
        if said is not None and said.state == "NotApplied":
            message = f"{_place(pod)}: {said.reason or 'the kernel has another value'} (wanted: {high})"
            return Wanted(type=MEMORY_HIGH_APPLIED, holds=False, reason=NOT_APPLIED, message=message)
    for pod, said in told:
        if said is None:
            return _unknown(NOT_REPORTED, f"{_place(pod)}: the worker says nothing of memory.high (wanted: {high})")
        if said.state != "Applied":
            return _unknown(NOT_SUPPORTED, f"{_place(pod)}: {said.reason or 'the worker cannot tell'} (wanted: {high})")
    routes = sorted({_ROUTES.get(said.route or "", _ROUTES["Other"]) for _, said in told if said is not None})
    message = f"memory.high is {high} {' and '.join(routes)}"
    return Wanted(type=MEMORY_HIGH_APPLIED, holds=True, reason=APPLIED, message=message)


def _before(model: Model, wanted: WantedRevision) -> Wanted | None:
    """The condition as it stands, where it is about the same revision: a worker that is busy has changed nothing."""
    condition = model.status.condition(MEMORY_HIGH_APPLIED)
    if condition is None or model.status.target_revision != wanted.revision:
        return None
    return Wanted(
        type=condition.type,
        holds=condition.status == "True",
        unknown=condition.status == "Unknown",
        reason=condition.reason,
        message=condition.message,
    )


def _unknown(reason: str, message: str) -> Wanted:
    return Wanted(type=MEMORY_HIGH_APPLIED, holds=False, unknown=True, reason=reason, message=message)


def _place(pod: Pod) -> str:
    return f"{pod.name} on {pod.node}" if pod.node else pod.name

"""What to tell the user about a model: one reason, one message, and how they weigh on its conditions."""

from __future__ import annotations

from dataclasses import dataclass

from cosyvoice_operator import failures, progress
from cosyvoice_operator.api import Model
from cosyvoice_operator.failures import Failure, Verdict
from cosyvoice_operator.observed import Observed, Workload

READY = "Ready"
SCALED_TO_ZERO = "ScaledToZero"
PAUSED = "Paused"
INVALID_SPEC = "InvalidSpec"
NAME_CONFLICT = "NameConflict"
WAITING_FOR_DELETION = "WaitingForDeletion"
REPLICAS_UNAVAILABLE = "ReplicasUnavailable"
PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """`reason` and `message` for the status; the flags are the conditions of the same names."""

    reason: str
    message: str
    ready: bool = False
    progressing: bool = False
    stalled: bool = False
    degraded: bool = False
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Why the revision that the spec asks for is not rolled out now; what runs goes on running."""

    reason: str
    message: str
    stalled: bool


def is_complete(workload: Workload | None, revision: str) -> bool:
    """Whether every wanted replica is of `revision` and available, and no old pod is left."""
    return (
        workload is not None
        and workload.carries(revision)
        and workload.updated == workload.available == workload.total == workload.replicas
    )


def assess(model: Model, observed: Observed, target: str, hold: Hold | None) -> Assessment:
    """Judge how `target` does: what stops us, else what is done, else what fails, else what goes on."""
    version = model.spec.version
    if observed.conflicts:
        return _conflict(observed)
    if hold is not None:
        return Assessment(reason=hold.reason, message=hold.message, stalled=hold.stalled)
    workload = observed.workload
    if workload is not None and is_complete(workload, target) and _follows(model, workload):
        return _complete(version, workload)

    found = failures.find(observed, target)
    exceeded = workload is not None and workload.carries(target) and workload.deadline_exceeded
    lost = _lost_replicas(model, observed, target)
    if found:
        return _failing(version, found, exceeded, lost)
    reason, message = progress.phase(observed, target)
    if exceeded:
        seconds = model.spec.rollout.progress_deadline_seconds
        reason, message = PROGRESS_DEADLINE_EXCEEDED, f"no progress for {seconds} s; {message}"
    elif lost:
        reason = REPLICAS_UNAVAILABLE
    return Assessment(
        reason=reason,
        message=f"{version}: {message}",
        progressing=not exceeded,
        stalled=exceeded,
        degraded=exceeded or lost,
    )


def describe(failure: Failure) -> str:
    """The failure in one line: its message, the details that the message leaves out, and where it happened."""
    said = failure.said
    details = [("file", said.file), ("tensor", said.tensor), ("expected", said.expected), ("actual", said.actual)]
    extra = [f"{name} {value}" for name, value in details if value and value not in failure.message]
    where = [f"pod {failure.pod}" if failure.pod else "", f"node {failure.node}" if failure.node else ""]
    told = ", ".join(filter(None, [*extra, *where]))
    return f"{failure.message} ({told})" if told else failure.message


def _conflict(observed: Observed) -> Assessment:
    lasting = [conflict for conflict in observed.conflicts if not conflict.going]
    if not lasting:
        told = ", ".join(f"{conflict.kind} {conflict.namespace}/{conflict.name}" for conflict in observed.conflicts)
        return Assessment(
            reason=WAITING_FOR_DELETION,
            message=f"waiting for the deletion of {told}",
            progressing=True,
        )
    told = ", ".join(f"{conflict.kind} {conflict.namespace}/{conflict.name}" for conflict in lasting)
    verb, it = ("exists and is", "it") if len(lasting) == 1 else ("exist and are", "them")
    return Assessment(
        reason=NAME_CONFLICT,
        message=f"{told} {verb} not owned by this CosyVoiceModel; delete {it} or give the model another name",
        stalled=True,
    )


def _follows(model: Model, workload: Workload) -> bool:
    """Whether the Deployment wants as many replicas as the model: until a new count is applied, full is not full."""
    return workload.autoscaled or workload.replicas == model.spec.worker.replicas


def _complete(version: str, workload: Workload) -> Assessment:
    if workload.replicas == 0:
        return Assessment(reason=SCALED_TO_ZERO, message=f"{version}: no replicas are wanted", ready=True)
    return Assessment(
        reason=READY,
        message=f"{version} serves with {workload.available} of {workload.replicas} replicas",
        ready=True,
    )


def _failing(version: str, found: tuple[Failure, ...], exceeded: bool, lost: bool) -> Assessment:
    gravest = found[0]
    condemned = gravest.counts(deadline_exceeded=exceeded)
    tries = ""
    if gravest.verdict is Verdict.RETRYABLE and not condemned:
        tries = f"; trying again ({gravest.restarts} of {failures.RETRIES})"
    stalled = condemned or exceeded or gravest.verdict is Verdict.BLOCKED
    return Assessment(
        reason=gravest.reason,
        message=f"{version}: {describe(gravest)}{tries}",
        progressing=not stalled,
        stalled=stalled,
        degraded=condemned or lost,
        failures=found,
    )


def _lost_replicas(model: Model, observed: Observed, target: str) -> bool:
    """Whether a revision that served at full count no longer does, though as many replicas are wanted as before.

    It holds until the count is full again. Nothing is lost where the model was scaled up, where it went back to a
    revision that served before, or where pods that are too many are all that keeps it from being complete.
    """
    status, workload = model.status, observed.workload
    if workload is None or status.ready is None or not target == status.target_revision == status.last_good_revision:
        return False
    if sum(pod.ready for pod in observed.pods_of(target)) >= workload.replicas:
        return False
    as_many_wanted = status.ready.rpartition("/")[2] == str(workload.replicas)
    return as_many_wanted and (status.is_true("Ready") or status.is_true("Degraded"))

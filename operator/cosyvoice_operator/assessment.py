"""What to tell the user about a model: one reason, one message, and how they weigh on its conditions."""

from __future__ import annotations

from dataclasses import dataclass

from cosyvoice_operator import capacity, failures, progress
from cosyvoice_operator.api import Model
from cosyvoice_operator.failures import Failure, Verdict
from cosyvoice_operator.judgement import PROGRESS_DEADLINE_EXCEEDED, Judgement
from cosyvoice_operator.observed import Observed, Workload
from cosyvoice_operator.pin import Wanted

READY = "Ready"
PINNED = "Pinned"
SCALED_TO_ZERO = "ScaledToZero"
PAUSED = "Paused"
INVALID_SPEC = "InvalidSpec"
NAME_CONFLICT = "NameConflict"
WAITING_FOR_DELETION = "WaitingForDeletion"
REPLICAS_UNAVAILABLE = "ReplicasUnavailable"
NO_CAPACITY = "NoCapacity"
NO_PREVIOUS_VERSION = "NoPreviousVersion"
SOURCE_CHANGED = "SourceChanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """`reason` and `message` for the status; the flags are the conditions of the same names.

    `failures` are those of `about`, or of the wanted revision where that is None.
    """

    reason: str
    message: str
    ready: bool = False
    progressing: bool = False
    stalled: bool = False
    degraded: bool = False
    rolled_back: bool = False
    failures: tuple[Failure, ...] = ()
    about: Wanted | None = None


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


def assess(
    model: Model,
    observed: Observed,
    wanted: Wanted,
    judged: Judgement,
    *,
    hold: Hold | None = None,
    lack: Failure | None = None,
) -> Assessment:
    """How `wanted` does, on which `judged` is the judgement: what stops us, else what is done, fails, or goes on.

    `lack` is the want of room that keeps its pods out, if that is all it waits for.
    """
    if observed.conflicts:
        return _conflict(observed)
    if hold is not None:
        return Assessment(reason=hold.reason, message=hold.message, stalled=hold.stalled)
    workload = observed.workload
    if workload is not None and is_complete(workload, wanted.revision) and follows(model, workload):
        return _complete(model, wanted, workload)

    lost = _lost_replicas(model, observed, wanted.revision)
    if lack is not None:
        return _crowded_out(model, wanted, judged, lack)
    if judged.failures:
        return _failing(model, observed, wanted, judged, lost)
    reason, message = progress.phase(observed, wanted.revision)
    if judged.exceeded:
        seconds = model.spec.rollout.progress_deadline_seconds
        reason, message = PROGRESS_DEADLINE_EXCEEDED, f"no progress for {seconds} s; {message}"
    elif lost:
        reason = REPLICAS_UNAVAILABLE
    return Assessment(
        reason=reason,
        message=f"{wanted.version}: {message}",
        progressing=not judged.exceeded,
        stalled=judged.exceeded,
        degraded=judged.exceeded or lost,
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


def follows(model: Model, workload: Workload) -> bool:
    """Whether the Deployment wants as many replicas as the model: until a new count is applied, full is not full."""
    return workload.autoscaled or workload.replicas == model.spec.worker.replicas


def _complete(model: Model, wanted: Wanted, workload: Workload) -> Assessment:
    if workload.replicas == 0:
        reason, message = SCALED_TO_ZERO, f"{wanted.version}: no replicas are wanted"
    else:
        reason = READY
        message = f"{wanted.version} serves with {workload.available} of {workload.replicas} replicas"
    if not wanted.pinned:
        return Assessment(reason=reason, message=message, ready=True)
    held = f"it is pinned by the annotation rollback-to, the spec asks for {model.spec.version}"
    return Assessment(reason=PINNED, message=f"{message}; {held}")


def _crowded_out(model: Model, wanted: Wanted, judged: Judgement, lack: Failure) -> Assessment:
    """No room for a pod more than there are. What serves goes on serving."""
    choice = model.spec.rollout.on_no_capacity
    then = {
        capacity.WAIT: "it is rolled out as soon as there is room",
        capacity.REPLACE: "a replica of the version that serves makes room for it",
        capacity.FAIL: "make room for one more, or choose another spec.rollout.onNoCapacity",
    }[choice]
    stalled = judged.exceeded or choice == capacity.FAIL
    return Assessment(
        reason=NO_CAPACITY,
        message=f"{wanted.version}: {describe(lack)}; {then}",
        progressing=not stalled,
        stalled=stalled,
        failures=judged.failures,
    )


def _failing(model: Model, observed: Observed, wanted: Wanted, judged: Judgement, lost: bool) -> Assessment:
    gravest = judged.failures[0]
    reason, then = gravest.reason, ""
    if judged.condemned:
        reason, then = _not_rolled_back(model, observed, wanted, gravest)
    elif gravest.verdict is Verdict.RETRYABLE:
        then = f"; trying again ({gravest.restarts} of {failures.RETRIES})"
    stalled = judged.condemned or judged.exceeded or gravest.verdict is Verdict.BLOCKED
    return Assessment(
        reason=reason,
        message=f"{wanted.version}: {describe(gravest)}{then}",
        progressing=not stalled,
        stalled=stalled,
        degraded=judged.condemned or lost,
        failures=judged.failures,
    )


def _not_rolled_back(model: Model, observed: Observed, wanted: Wanted, gravest: Failure) -> tuple[str, str]:
    """The reason to give for a condemned revision that stays, and why it stays."""
    last_good = model.status.last_good_revision
    if last_good == wanted.revision:  # it has served before: it is not the version, something else has changed
        return (SOURCE_CHANGED if gravest.reason == "DigestMismatch" else gravest.reason), ""
    if last_good is None:
        return NO_PREVIOUS_VERSION, "; there is no earlier version to go back to"
    if model.spec.paused:
        return gravest.reason, "; nothing is rolled back: spec.paused is true"
    if not model.spec.rollout.automatic_rollback:
        return gravest.reason, "; nothing is rolled back: spec.rollout.automaticRollback is false"
    if observed.stored(last_good) is None:
        return NO_PREVIOUS_VERSION, f"; the revision {last_good} that served before is gone: its ConfigMap was deleted"
    return gravest.reason, ""


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
    return as_many_wanted and (status.reason == PINNED or status.is_true("Ready") or status.is_true("Degraded"))

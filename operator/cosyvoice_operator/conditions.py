"""The conditions of a model.

Ready          the version that the spec asks for serves at full count (so `kubectl wait` cannot pass on a bad one)
Available      something serves, whatever its version
Progressing    the operator is at it and nothing is in the way
Stalled        it will not get further unless someone acts (the name that kstatus knows: Flux, Argo CD)
Degraded       the version fails, or fewer replicas serve than did
WeightsStaged  a pod of the target revision has staged its weights
WarmedUp       a pod of the target revision has warmed up
RolledBack     the target revision failed, and the last good one serves in its place
Pinned         the annotation rollback-to decides which revision serves, not the spec

MemoryHighApplied, which stands only where the spec wishes for it, is decided in `throttling`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cosyvoice_operator.api_status import Condition, Staged, Status
from cosyvoice_operator.assessment import Assessment

READY = "Ready"
AVAILABLE = "Available"
PROGRESSING = "Progressing"
STALLED = "Stalled"
DEGRADED = "Degraded"
WEIGHTS_STAGED = "WeightsStaged"
WARMED_UP = "WarmedUp"
ROLLED_BACK = "RolledBack"
PINNED = "Pinned"
MEMORY_HIGH_APPLIED = "MemoryHighApplied"

AS_EXPECTED = "AsExpected"
MAX_MESSAGE = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A condition as it should stand now; when it last changed is found out by `merge`."""

    type: str
    holds: bool
    unknown: bool = False  # neither
    reason: str
    message: str = ""


def of_assessment(assessment: Assessment) -> tuple[Wanted, ...]:
    """The five conditions that the assessment decides."""
    return (
        Wanted(type=READY, holds=assessment.ready, reason=assessment.reason, message=assessment.message),
        Wanted(type=PROGRESSING, holds=assessment.progressing, reason=assessment.reason, message=assessment.message),
        _abnormal(STALLED, assessment.stalled, assessment),
        _abnormal(DEGRADED, assessment.degraded, assessment),
        _abnormal(ROLLED_BACK, assessment.rolled_back, assessment),
    )


def of_service(available: int, version: str | None) -> Wanted:
    """Whether anything serves."""
    if available:
        return Wanted(type=AVAILABLE, holds=True, reason="Serving", message=f"{version or 'a version'} serves")
    return Wanted(type=AVAILABLE, holds=False, reason="NoReplicaAvailable", message="no replica is available")


def of_weights(staged: Staged | None, assessment: Assessment) -> Wanted:
    """Whether the target's weights are in some pod's memory."""
    if staged is None:
        return Wanted(type=WEIGHTS_STAGED, holds=False, reason=assessment.reason)
    message = f"{staged.digest or 'the weights'}: {staged.bytes or '?'} bytes in {staged.seconds or '?'} s"
    return Wanted(type=WEIGHTS_STAGED, holds=True, reason="Staged", message=message)


def of_warm_up(warmed_up: bool, preload: bool, assessment: Assessment) -> Wanted:
    """Whether a worker of the target said its warm-up texts."""
    if not preload:
        message = "spec.engine.preload is false: the model is loaded at the first request"
        return Wanted(type=WARMED_UP, holds=False, reason="PreloadOff", message=message)
    if not warmed_up:
        return Wanted(type=WARMED_UP, holds=False, reason=assessment.reason)
    return Wanted(type=WARMED_UP, holds=True, reason="WarmedUp")


def of_pin(revision: str | None, version: str) -> Wanted:
    """Whether the user pinned `revision` instead of what the spec asks for (None: not)."""
    if revision is None:
        return Wanted(type=PINNED, holds=False, reason=AS_EXPECTED)
    message = f"{version} (revision {revision}) is to serve, whatever the spec asks for, until the annotation goes"
    return Wanted(type=PINNED, holds=True, reason="RollbackTo", message=message)


def merge(previous: Status, wanted: Iterable[Wanted], generation: int, now: str) -> tuple[Condition, ...]:
    """The conditions to write: `last_transition_time` moves only where the status turned."""
    merged = []
    for condition in wanted:
        status = "Unknown" if condition.unknown else "True" if condition.holds else "False"
        before = previous.condition(condition.type)
        unchanged = before is not None and before.status == status
        merged.append(
            Condition(
                type=condition.type,
                status=status,
                reason=condition.reason,
                message=condition.message[:MAX_MESSAGE],
                observed_generation=generation,
                last_transition_time=before.last_transition_time if before and unchanged else now,
            )
        )
    return tuple(merged)


def _abnormal(type: str, holds: bool, assessment: Assessment) -> Wanted:  # noqa: A002 - the field's own name
    if not holds:
        return Wanted(type=type, holds=False, reason=AS_EXPECTED)
    return Wanted(type=type, holds=True, reason=assessment.reason, message=assessment.message)

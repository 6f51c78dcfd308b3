"""What is worth a Kubernetes Event: what changed between the status before and after a pass. Pure.

An event is sent only after its status was written, so a pass that is repeated says nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cosyvoice_operator import assessment, conditions, progress, restoring
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.failures import FAILED_CREATE, UNSCHEDULABLE

NORMAL = "Normal"
WARNING = "Warning"

NO_CAPACITY = frozenset({UNSCHEDULABLE, FAILED_CREATE, assessment.NO_CAPACITY})
_WARNINGS = frozenset(
    {assessment.INVALID_SPEC, assessment.NAME_CONFLICT, restoring.ROLLING_BACK, restoring.ROLLBACK_FAILED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One Kubernetes Event on the model."""

    type: str
    reason: str
    message: str


def between(before: Status, after: Status, *, created: bool) -> tuple[Event, ...]:
    """The events of one pass. `created`: it makes the target's revision."""
    return tuple(_between(before, after, created))


def _between(before: Status, after: Status, created: bool) -> Iterator[Event]:
    label = f"{after.target_version} (revision {after.target_revision})"
    new_target = before.target_revision != after.target_revision
    if created and new_target:
        yield Event(type=NORMAL, reason="RevisionCreated", message=f"{label} was created")
        if before.active_revision:
            message = f"{label} replaces {before.active_version} (revision {before.active_revision})"
            yield Event(type=NORMAL, reason="RolloutStarted", message=message)
    elif _is_rolled_out(after) and after.is_true(conditions.PROGRESSING):
        if new_target:
            yield Event(type=NORMAL, reason="RolloutStarted", message=f"{label} is rolled out again")
        elif before.rollout is not None and not _is_rolled_out(before):
            yield Event(type=NORMAL, reason="RolloutStarted", message=f"{label} is tried again")
    yield from _of_reason(before, after, new_target)
    if _turned(before, after, conditions.WEIGHTS_STAGED) or (new_target and after.staged):
        staged = after.condition(conditions.WEIGHTS_STAGED)
        yield Event(type=NORMAL, reason="WeightsStaged", message=f"{label}: {staged.message if staged else ''}")
    known = {(record.revision, record.reason, record.file, record.tensor) for record in before.failures}
    for record in after.failures:
        if (record.revision, record.reason, record.file, record.tensor) not in known:
            message = f"{record.version}: {record.reason}: {record.message}"
            yield Event(type=WARNING, reason="LoadFailed", message=message)
    if _turned(before, after, conditions.PINNED):
        yield Event(type=NORMAL, reason="Pinned", message=f"{label} is pinned by the annotation rollback-to")
    if _turned(before, after, conditions.READY) and after.reason == assessment.READY:
        yield Event(type=NORMAL, reason="VersionReady", message=f"{label} serves ({after.ready})")


def _of_reason(before: Status, after: Status, new_target: bool) -> Iterator[Event]:
    """Events of a state that was entered: the reason is another one, or the same one for another revision."""
    if before.reason == after.reason and not new_target:
        return
    message = after.message or ""
    if after.reason in NO_CAPACITY and before.reason in NO_CAPACITY and not new_target:
        return
    if after.reason == progress.STAGING:
        yield Event(type=NORMAL, reason="StagingStarted", message=message)
    elif after.reason in _WARNINGS:
        yield Event(type=WARNING, reason=after.reason, message=message)
    elif after.reason == restoring.ROLLED_BACK:
        yield Event(type=NORMAL, reason=after.reason, message=message)
    elif after.reason in NO_CAPACITY:
        yield Event(type=WARNING, reason="InsufficientCapacity", message=message)


def _is_rolled_out(status: Status) -> bool:
    """Whether the target itself is what is brought into service, and not what serves in its place."""
    return status.rollout is not None and status.rollout.revision == status.target_revision


def _turned(before: Status, after: Status, condition: str) -> bool:
    return after.is_true(condition) and not before.is_true(condition)

"""What the operator last wrote into a model's status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cosyvoice_operator.api_part import Part


class Condition(Part, frozen=True):
    """One of `conditions`, as in metav1.Condition."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int
    last_transition_time: str


class Staged(Part, frozen=True):
    """What `stage` reported of `revision`: the digest, bytes and seconds of one pod's staging."""

    revision: str
    digest: str | None = None
    bytes: int | None = None
    seconds: float | None = None
    pod: str | None = None
    node: str | None = None


class Load(Part, frozen=True):
    """Where the seconds of one pod of `revision` went, from its creation to Ready (`total`)."""

    revision: str
    pod: str
    schedule: float | None = None
    stage: float | None = None
    import_: float | None = msgspec.field(default=None, name="import")
    map: float | None = None
    build: float | None = None
    warm_up: float | None = None
    total: float | None = None


class FailureRecord(Part, frozen=True):
    """One failure of a revision, kept after the revision is gone."""

    revision: str
    version: str
    reason: str
    message: str
    file: str | None = None
    tensor: str | None = None
    expected: str | None = None
    actual: str | None = None
    pod: str | None = None
    node: str | None = None
    time: str | None = None


class Quarantined(Part, frozen=True):
    """A revision that failed and is not tried again by itself, or not before `retry_after`.

    `retry` and `rollback_to` are the user's annotations at that time, `attempts` how often it failed in a row.
    """

    revision: str
    version: str
    reason: str
    message: str
    since: str
    attempts: int = 1
    retry: str | None = None
    rollback_to: str | None = None
    retry_after: str | None = None


class RolloutRecord(Part, frozen=True):
    """The rollout that was begun last: to which revision, and how. `attempt` grows with every one.

    A swap in place that is tried again is one more attempt; `tries` counts those of this rollout that failed, and
    `serving_since` is when the pods that it waits for began to serve the revision.
    """

    revision: str
    strategy: str
    attempt: int
    started_at: str
    tries: int = 0
    serving_since: str | None = None


class Status(Part, frozen=True):
    """What the operator last wrote. Every decision can be recovered from it after a crash."""

    observed_generation: int = 0
    observed_retry: str | None = None
    observed_rollback_to: str | None = None
    active_version: str | None = None
    active_revision: str | None = None
    target_version: str | None = None
    target_revision: str | None = None
    last_good_revision: str | None = None
    last_good_template: str | None = None  # where it is not the last good revision's own
    replicas: int | None = None
    ready_replicas: int | None = None
    ready: str | None = None
    reason: str | None = None
    message: str | None = None
    selector: str | None = None
    staged: Staged | None = None
    load: Load | None = None
    failures: tuple[FailureRecord, ...] = ()
    quarantine: tuple[Quarantined, ...] = ()
    rollout: RolloutRecord | None = None
    conditions: tuple[Condition, ...] = ()

    def condition(self, type: str) -> Condition | None:  # noqa: A002 - the field's own name
        """The condition of this type, if it was ever set."""
        return next((condition for condition in self.conditions if condition.type == type), None)

    def is_true(self, type: str) -> bool:  # noqa: A002 - the field's own name
        """Whether the condition of this type stands at True."""
        condition = self.condition(type)
        return condition is not None and condition.status == "True"


def parse_status(raw: Mapping[str, Any]) -> Status:
    """The status as last written; an empty one where it is absent or not ours (someone wrote into it by hand)."""
    try:
        return msgspec.convert(raw.get("status") or {}, Status)
    except msgspec.ValidationError:
        return Status()


def encode_status(status: Status) -> dict[str, Any]:
    """The status as the API server takes it; absent values are left out."""
    encoded: dict[str, Any] = msgspec.to_builtins(status, str_keys=True)
    return encoded

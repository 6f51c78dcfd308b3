"""Quarantine: which revisions failed, and until when they are not tried again.

An entry holds until it expires (only what may pass by itself does: 10 minutes, doubling to 6 hours), or until the user
asks: with a new value of the annotation `retry`, or by pinning exactly this revision. Scaling, editing back and forth
or taking a pin away never lifts one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from cosyvoice_operator import times
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import Quarantined
from cosyvoice_operator.failures import Failure, Verdict

MAX_ENTRIES = 20
MAX_MESSAGE = 1000
FIRST_WAIT = timedelta(minutes=10)
LONGEST_WAIT = timedelta(hours=6)

Entries = tuple[Quarantined, ...]


def find(entries: Entries, revision: str | None) -> Quarantined | None:
    """The entry of `revision`, in force or not."""
    return next((entry for entry in entries if entry.revision == revision), None)


def is_lifted(entry: Quarantined, model: Model) -> bool:
    """Whether the user has asked to try it again since."""
    retried = model.retry is not None and model.retry != entry.retry
    pinned = model.rollback_to == entry.revision != entry.rollback_to
    return retried or pinned


def is_expired(entry: Quarantined, now: datetime) -> bool:
    """Whether it may be tried again unasked."""
    until = times.read(entry.retry_after)
    return until is not None and now >= until


def add(
    entries: Entries, model: Model, failure: Failure, message: str, *, revision: str, version: str, now: datetime
) -> Entries:
    """The entries with `revision` among them, newest first; the oldest goes where there are too many."""
    before = find(entries, revision)
    attempts = 1 if before is None or is_lifted(before, model) else before.attempts + 1
    wait = min(FIRST_WAIT * 2 ** min(attempts - 1, 16), LONGEST_WAIT)
    entry = Quarantined(
        revision=revision,
        version=version,
        reason=failure.reason,
        message=message[:MAX_MESSAGE],
        since=times.write(now),
        attempts=attempts,
        retry=model.retry,
        rollback_to=model.rollback_to if model.rollback_to == revision else None,
        retry_after=None if failure.verdict is Verdict.FATAL else times.write(now + wait),
    )
    others = without(entries, revision)
    if len(others) >= MAX_ENTRIES:
        oldest = next(old.revision for old in reversed(others) if old.revision != model.status.target_revision)
        others = without(others, oldest)
    return (entry, *others)


def without(entries: Entries, revision: str) -> Entries:
    """The entries but the one of `revision`."""
    return tuple(entry for entry in entries if entry.revision != revision)


def revisions(entries: Iterable[Quarantined]) -> frozenset[str]:
    """Which revisions have an entry."""
    return frozenset(entry.revision for entry in entries)

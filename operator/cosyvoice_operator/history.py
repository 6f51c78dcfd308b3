"""The history of a model: which stored revisions may go, and what the labels of the others tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cosyvoice_operator import names, quarantine
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.observed import Observed, StoredRevision

PENDING = "Pending"
GOOD = "Good"
FAILED = "Failed"

DIGEST_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabelling:
    """Labels that a revision's ConfigMap has to get."""

    revision: str
    labels: Mapping[str, str]


def superfluous(model: Model, observed: Observed, needed: Iterable[str | None]) -> tuple[str, ...]:
    """Revisions over the history limit. Never one that something runs, wants, or could be brought back to."""
    in_use = {*needed, *observed.scaled_revisions, *(pod.revision for pod in observed.pods), model.rollback_to}
    if observed.workload:
        in_use.add(observed.workload.revision)
    history = [stored.revision for stored in observed.revisions if stored.revision not in in_use]
    return tuple(history[model.spec.rollout.history_limit :])


def relabellings(observed: Observed, status: Status, *, condemned: bool) -> tuple[Relabelling, ...]:
    """The labels that differ from what `status` says. `condemned`: the target fails and is not rolled back."""
    found = []
    for stored in observed.revisions:
        labels = {names.LABEL_OUTCOME: _outcome(stored, status, condemned), names.LABEL_DIGEST: _digest(stored, status)}
        before = {names.LABEL_OUTCOME: stored.outcome, names.LABEL_DIGEST: stored.digest}
        changed = {label: value for label, value in labels.items() if value is not None and value != before[label]}
        if changed:
            found.append(Relabelling(revision=stored.revision, labels=changed))
    return tuple(found)


def _outcome(stored: StoredRevision, status: Status, condemned: bool) -> str | None:
    if stored.revision == status.last_good_revision:
        return GOOD
    if quarantine.find(status.quarantine, stored.revision) is not None:
        return FAILED
    if stored.revision != status.target_revision or stored.outcome == GOOD:
        return stored.outcome
    return FAILED if condemned else stored.outcome or PENDING


def _digest(stored: StoredRevision, status: Status) -> str | None:
    """The first digits of what was staged: enough to tell versions apart in a column."""
    staged = status.staged
    if staged is None or staged.revision != stored.revision or staged.digest is None:
        return stored.digest
    return staged.digest.removeprefix("sha256:")[:DIGEST_DIGITS]

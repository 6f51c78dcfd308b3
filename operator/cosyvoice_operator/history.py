"""The history of a model: which stored revisions may go, and what the labels of the others tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cosyvoice_operator import names, pins, quarantine
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.observed import Observed, StoredRevision

PENDING = names.OUTCOME_PENDING
GOOD = "Good"
FAILED = "Failed"

DIGEST_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabelling:
    """Labels and annotations that a revision's ConfigMap has to get."""

    revision: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


def superfluous(model: Model, observed: Observed, needed: Iterable[str | None]) -> tuple[str, ...]:
    """Revisions over the history limit. Never one that something runs, wants, or could be brought back to.

    A live ConfigMap goes with its template, and what it names stays as long. One without its template goes too.
    """
    in_use = {*needed, model.rollback_to}
    in_use |= {name for pod in observed.pods for name in (pod.revision, pod.carrier)}
    scaled = [found for found in observed.replica_sets if found.replicas > 0]
    in_use |= {name for found in scaled for name in (found.revision, found.carrier)}
    if observed.workload:
        in_use |= {observed.workload.revision, observed.workload.carrier}
    history = [stored.revision for stored in observed.revisions if stored.revision not in in_use]
    over = set(history[model.spec.rollout.history_limit :])
    named = {name for live in observed.lives if live.template not in over for name in (live.current, live.candidate)}
    orphans = {live.template for live in observed.lives if observed.stored(live.template) is None} - in_use
    return tuple(name for name in history if name in over - named) + tuple(sorted(orphans))


def relabellings(observed: Observed, status: Status, *, condemned: bool) -> tuple[Relabelling, ...]:
    """The labels that differ from what `status` says. `condemned`: the target fails and is not rolled back."""
    found = []
    for stored in observed.revisions:
        labels = {names.LABEL_OUTCOME: _outcome(stored, status, condemned), names.LABEL_DIGEST: _digest(stored, status)}
        before = {names.LABEL_OUTCOME: stored.outcome, names.LABEL_DIGEST: stored.digest}
        changed = {label: value for label, value in labels.items() if value is not None and value != before[label]}
        # The pods that told it may be gone since the status was written: a crash may have come between the two.
        pin = pins.known(observed, stored.revision) or _staged_digest(stored, status)
        pinned = {names.ANNOTATION_DIGEST: pin} if pin is not None and pin != stored.pin else {}
        if changed or pinned:
            found.append(Relabelling(revision=stored.revision, labels=changed, annotations=pinned))
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
    digest = _staged_digest(stored, status)
    return stored.digest if digest is None else digest.removeprefix("sha256:")[:DIGEST_DIGITS]


def _staged_digest(stored: StoredRevision, status: Status) -> str | None:
    """The digest that the status remembers of this revision. A pod told it: what is none would be no label either."""
    staged = status.staged
    told = staged.digest if staged is not None and staged.revision == stored.revision else None
    return told if pins.is_digest(told) else None

"""The rules of a rollout: from what the user asked for and what is there, to what has to be done. Pure.

target    the revision that the spec asks for
deploy    the revision that the Deployment has to carry: the target, unless something holds it back
prune     revisions nobody can come back to
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from cosyvoice_operator import assessment, progress, revision
from cosyvoice_operator.api import Model
from cosyvoice_operator.assessment import Assessment, Hold
from cosyvoice_operator.errors import InvalidSpecError
from cosyvoice_operator.failures import Verdict
from cosyvoice_operator.observed import Observed
from cosyvoice_operator.revision import Policy

ASK_AGAIN_SECONDS = 1.0  # a worker is loading: its phases are worth showing as they pass
LOOK_AGAIN_SECONDS = 5.0  # something is awaited that no watch tells of: a claim, a mount


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one pass does and says.

    `touch` False: not one object of this model may be written. `create`: the target's ConfigMap does not exist yet.
    `deploy` None: leave the Deployment as it is. `look_again` None: nothing is awaited but events and the next resync.
    """

    target: str
    create: bool
    deploy: str | None
    touch: bool
    prune: tuple[str, ...]
    assessment: Assessment
    active_revision: str | None
    active_version: str | None
    last_good: str | None
    look_again: float | None


def decide(model: Model, observed: Observed, policy: Policy) -> Decision:
    """The next step of `model`. Equal arguments give the same step; once it is done, the next step is to do nothing."""
    target = revision.identity(model.spec)
    hold = _hold(model, observed, policy, target)
    touch = not observed.conflicts
    deploy = target if hold is None else _kept(model, observed)
    verdict = assessment.assess(model, observed, target, hold)
    active_revision, active_version = _active(model, observed, target)
    served = verdict.reason == assessment.READY
    last_good = target if served else model.status.last_good_revision
    return Decision(
        target=target,
        create=touch and deploy == target and observed.stored(target) is None,
        deploy=deploy if touch else None,
        touch=touch,
        prune=_prune(model, observed, {target, deploy, active_revision, last_good}) if touch else (),
        assessment=verdict,
        active_revision=active_revision,
        active_version=active_version,
        last_good=last_good,
        look_again=_look_again(observed, target, verdict),
    )


def _hold(model: Model, observed: Observed, policy: Policy, target: str) -> Hold | None:
    """Why the target may not be rolled out, if so. An unusable spec is told of even while the model is paused."""
    try:
        revision.resolve(model.spec, policy)
    except InvalidSpecError as error:
        return Hold(reason=assessment.INVALID_SPEC, message=str(error), stalled=True)
    if observed.refusal is not None:
        return Hold(reason=assessment.INVALID_SPEC, message=observed.refusal, stalled=True)
    if model.spec.paused and (observed.workload is None or observed.workload.revision != target):
        return Hold(reason=assessment.PAUSED, message=f"{model.spec.version} waits: spec.paused is true", stalled=False)
    return None


def _kept(model: Model, observed: Observed) -> str | None:
    """The revision to keep in repair while the target is held back: the one that runs, or ran until it was deleted."""
    running = observed.workload.revision if observed.workload else model.status.active_revision
    return running if observed.stored(running) else None


def _active(model: Model, observed: Observed, target: str) -> tuple[str | None, str | None]:
    """The revision that serves, and its version label.

    During a rollout the old one counts as long as it has a ready pod; where nothing is ready, what served last.
    """
    status = model.status
    ready = Counter(pod.revision for pod in observed.pods if pod.ready)
    if ready and (assessment.is_complete(observed.workload, target) or status.active_revision not in ready):
        chosen = max(ready, key=lambda candidate: (candidate == target, ready[candidate]))
        version = next(pod.version for pod in observed.pods if pod.revision == chosen)
        return chosen, version
    return status.active_revision, status.active_version


def _prune(model: Model, observed: Observed, needed: set[str | None]) -> tuple[str, ...]:
    """Revisions over the history limit. Never one that something runs, wants, or could be brought back to."""
    in_use = needed | observed.scaled_revisions | {pod.revision for pod in observed.pods}
    if observed.workload:
        in_use.add(observed.workload.revision)
    history = [stored.revision for stored in observed.revisions if stored.revision not in in_use]
    return tuple(history[model.spec.rollout.history_limit :])


def _look_again(observed: Observed, target: str, verdict: Assessment) -> float | None:
    if verdict.ready or verdict.reason in {assessment.INVALID_SPEC, assessment.NAME_CONFLICT, assessment.PAUSED}:
        return None
    if any(progress.is_loading(pod) for pod in observed.pods_of(target)):
        return ASK_AGAIN_SECONDS
    if verdict.failures and verdict.failures[0].verdict is Verdict.FATAL:
        return None
    return LOOK_AGAIN_SECONDS

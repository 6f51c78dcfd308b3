"""The rules of a rollout: from what the user asked for and what is there, to what has to be done. Pure.

wanted     the revision to bring into service: the one that the spec asks for, or the one that the user pinned
revision   the revision that the pods are to load: the wanted one, unless something holds it back
template   the revision whose pod template the Deployment has to carry for that (`placement`)
prune      revisions nobody can come back to

A revision that fails is condemned (`judgement`) and put into quarantine, and the last good one takes its place as it
was stored. The quarantine is in the status, which is written before the Deployment: whoever comes to this point again,
in this process or in the next, decides the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime

from cosyvoice_operator import (
    assessment,
    capacity,
    condemned,
    history,
    holds,
    pin,
    placement,
    progress,
    quarantine,
    restoring,
    swapping,
    times,
)
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import Quarantined, RolloutRecord
from cosyvoice_operator.assessment import Assessment, Hold
from cosyvoice_operator.condemned import Scene
from cosyvoice_operator.failures import Verdict
from cosyvoice_operator.judgement import Judgement
from cosyvoice_operator.observed import Observed
from cosyvoice_operator.pin import Wanted
from cosyvoice_operator.placement import Placement
from cosyvoice_operator.quarantine import Entries
from cosyvoice_operator.revision import Policy

ASK_AGAIN_SECONDS = 1.0  # a worker is loading: its phases are worth showing as they pass
LOOK_AGAIN_SECONDS = 5.0  # something is awaited that no watch tells of: a claim, a mount


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one pass does and says.

    `touch` False: not one object of this model may be written. `create`: the revision's ConfigMap does not exist yet.
    `placed` None: leave the Deployment as it is. `fallen`: what this pass puts into quarantine. `look_again` None:
    nothing is awaited but events and the next resync.
    """

    wanted: Wanted
    create: bool
    placed: Placement | None
    touch: bool
    prune: tuple[str, ...]
    assessment: Assessment
    condemned: bool
    quarantine: Entries
    fallen: Quarantined | None
    rollout: RolloutRecord | None
    active_revision: str | None
    active_version: str | None
    last_good: str | None
    last_good_template: str | None
    look_again: float | None

    @property
    def target(self) -> str:
        """The wanted revision's identity."""
        return self.wanted.revision

    @property
    def revision(self) -> str | None:
        """The revision that the pods are to load."""
        return self.placed.revision if self.placed else None

    @property
    def template(self) -> str | None:
        """The revision whose pod template the Deployment has to carry."""
        return self.placed.template if self.placed else None


def decide(model: Model, observed: Observed, policy: Policy, now: datetime) -> Decision:
    """The next step of `model`. Equal arguments give the same step; once it is done, the next step is to do nothing."""
    status = model.status
    going = swapping.under_way(model, observed, now)
    observed = swapping.unfinished(model, observed, going)
    wanted = pin.wanted(model, observed)
    scene = Scene(model=model, observed=observed, wanted=wanted, now=now, going=going)
    judged = condemned.judge(scene, wanted.revision)
    fallen = condemned.fallen(scene, judged)
    entries = fallen or status.quarantine
    entry = condemned.bar(scene, entries, wanted.revision)
    rolled_back = entry is not None and observed.carries(scene.last_good)
    hold = holds.find(model, observed, policy, wanted, rolled_back=rolled_back)
    touch = not observed.conflicts
    revision = _revision(scene, hold, entries, entry) if touch else None

    lack = swapping.lack(going, wanted.revision) or capacity.lacking(observed, wanted.revision, judged.failures, now)
    placed = None
    if revision is not None:
        placed = placement.place(scene, policy, revision, lack, returning=entry is not None)
    if hold is None and touch and entry is not None and not condemned.stays(scene, entry):
        verdict = _restoring(scene, entry, judged, fell=_is(fallen, wanted))
    else:
        verdict = assessment.assess(model, observed, wanted, judged, hold=hold, lack=lack)
        verdict = placement.tell(placed, wanted.version, verdict) if placed else verdict

    served = entry is None and verdict.reason in {assessment.READY, assessment.PINNED} and observed.wants_pods
    last_good = wanted.revision if served else status.last_good_revision
    active_revision, active_version = _active(model, observed, revision or wanted.revision)
    last_good_template = _template_of(observed, wanted.revision) if served else status.last_good_template
    needed = {wanted.revision, revision, active_revision, last_good, last_good_template, status.last_good_revision}
    needed |= {status.last_good_template, placed.template if placed else None}
    return Decision(
        wanted=wanted,
        create=revision == wanted.revision and observed.stored(revision) is None,
        placed=placed,
        touch=touch,
        prune=history.superfluous(model, observed, needed) if touch else (),
        assessment=verdict,
        condemned=judged.condemned,
        quarantine=quarantine.without(entries, wanted.revision) if served else entries,
        fallen=fallen[0] if fallen else None,
        rollout=placed.record if placed else status.rollout,
        active_revision=active_revision,
        active_version=active_version,
        last_good=last_good,
        last_good_template=last_good_template,
        look_again=_look_again(scene, placed, verdict, entry),
    )


def _is(fallen: Entries | None, wanted: Wanted) -> bool:
    return fallen is not None and fallen[0].revision == wanted.revision


def _template_of(observed: Observed, revision: str) -> str | None:
    """The template that `revision` is served by, where that is not its own."""
    carrier = observed.workload.carrier if observed.workload else None
    return None if carrier == revision else carrier


def _revision(scene: Scene, hold: Hold | None, entries: Entries, entry: Quarantined | None) -> str | None:
    """The revision for the Deployment's pods; None where it has to be left as it is."""
    if hold is None and entry is None:
        return scene.wanted.revision
    running = scene.observed.workload.revision if scene.observed.workload else None
    chosen = running or scene.model.status.active_revision  # what runs is kept in repair, or what ran until it was gone
    barred = entry or condemned.bar(scene, entries, chosen)
    frozen = running is not None and (
        scene.model.spec.paused or (barred is not None and condemned.stays(scene, barred))
    )
    if barred is not None and not frozen:
        chosen = scene.last_good
    return chosen if scene.observed.stored(chosen) else None


def _restoring(scene: Scene, entry: Quarantined, judged: Judgement, *, fell: bool) -> Assessment:
    """What to tell of the way back; `fell`: it begins in this pass, which records what condemned the revision."""
    restored = judged_back = None
    if scene.back is not None:
        restored = Wanted(revision=scene.back.revision, version=scene.back.version)
    elif scene.last_good is not None and scene.observed.carries(scene.last_good):
        restored = Wanted(revision=scene.last_good, version=scene.model.status.active_version or scene.last_good)
    if restored is not None:
        judged_back = condemned.judge(scene, restored.revision)
    verdict = restoring.assess(scene.model, scene.observed, entry, restored, judged_back)
    if not fell:
        return verdict
    cause = replace(judged.failures[0], time=judged.failures[0].time or scene.now)
    return replace(verdict, failures=(cause, *judged.failures[1:]), about=scene.wanted)


def _active(model: Model, observed: Observed, goal: str) -> tuple[str | None, str | None]:
    """The revision that serves, and its version label.

    During a rollout the old one counts as long as it has a ready pod; where nothing is ready, what served last.
    """
    status = model.status
    ready = Counter(pod.revision for pod in observed.pods if pod.ready)
    if ready and (assessment.is_complete(observed.workload, goal) or status.active_revision not in ready):
        chosen = max(ready, key=lambda candidate: (candidate == goal, ready[candidate]))
        version = next(pod.version for pod in observed.pods if pod.revision == chosen)
        return chosen, version
    return status.active_revision, status.active_version


def _look_again(scene: Scene, placed: Placement | None, verdict: Assessment, entry: Quarantined | None) -> float | None:
    if placed is not None and placed.swap is not None and not placed.swap.done:
        stuck = placed.swap.condemned or placed.swap.room_refused
        return LOOK_AGAIN_SECONDS if stuck else ASK_AGAIN_SECONDS
    if verdict.ready or verdict.reason in {assessment.INVALID_SPEC, assessment.NAME_CONFLICT, assessment.PAUSED}:
        return None
    loading = placed.revision if placed else scene.wanted.revision
    if any(progress.is_loading(pod) for pod in scene.observed.pods_of(loading)):
        return ASK_AGAIN_SECONDS
    if verdict.reason == restoring.ROLLED_BACK:
        until = None if entry is None else times.read(entry.retry_after)
        return None if until is None else max(LOOK_AGAIN_SECONDS, (until - scene.now).total_seconds())
    if verdict.failures and verdict.failures[0].verdict is Verdict.FATAL:
        return None
    return LOOK_AGAIN_SECONDS

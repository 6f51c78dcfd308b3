"""What keeps a revision out of service: what a pass newly puts into quarantine, and whether an entry holds now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from cosyvoice_operator import assessment, judgement, quarantine, swapping
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import Quarantined
from cosyvoice_operator.judgement import Judgement
from cosyvoice_operator.observed import Observed, StoredRevision
from cosyvoice_operator.pin import Wanted
from cosyvoice_operator.quarantine import Entries
from cosyvoice_operator.swapping import Swapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What one pass looks at; `going` is the swap that goes on."""

    model: Model
    observed: Observed
    wanted: Wanted
    now: datetime
    going: Swapping | None = None

    @property
    def last_good(self) -> str | None:
        """The revision that last served at full count: what there is to go back to."""
        return self.model.status.last_good_revision

    @property
    def back(self) -> StoredRevision | None:
        """The same, as it is stored."""
        return self.observed.stored(self.last_good)

    @property
    def may_move(self) -> bool:
        """Whether a condemned revision is taken out of service."""
        return self.model.spec.rollout.automatic_rollback and not self.model.spec.paused


def judge(scene: Scene, revision: str) -> Judgement:
    """The judgement on a revision of the model. The claim that was looked at is the wanted revision's."""
    observed = scene.observed if revision == scene.wanted.revision else replace(scene.observed, claim=None)
    seconds = scene.model.spec.rollout.progress_deadline_seconds
    judged = judgement.judge(observed, revision, seconds, scene.now, proven=revision == scene.last_good)
    swapped = scene.going is not None and scene.going.revision == revision
    return swapping.judge(scene.going, judged) if scene.going is not None and swapped else judged


def fallen(scene: Scene, judged: Judgement) -> Entries | None:
    """The quarantine with the revision that is brought into service added to it, where that is condemned now.

    `judged` is the judgement on the wanted revision. The condemned one need not be that: the spec may have been edited
    since, to another version or to something unusable.
    """
    workload = scene.observed.workload
    if workload is None or workload.revision is None or not workload.settled or scene.observed.conflicts:
        return None
    suspect = scene.going.revision if scene.going is not None else workload.revision
    entries = scene.model.status.quarantine
    if suspect == scene.last_good or not scene.may_move or scene.back is None or bar(scene, entries, suspect):
        return None
    if suspect != scene.wanted.revision:
        judged = judge(scene, suspect)
    if not judged.condemned or assessment.is_complete(workload, suspect):
        return None
    gravest, stored = judged.failures[0], scene.observed.stored(suspect)
    return quarantine.add(
        entries,
        scene.model,
        gravest,
        assessment.describe(gravest),
        revision=suspect,
        version=scene.wanted.version if stored is None else stored.version,
        now=scene.now,
    )


def bar(scene: Scene, entries: Entries, revision: str | None) -> Quarantined | None:
    """The entry that keeps `revision` out of service now.

    One that the user lifted lets it in once the pods that failed are gone, or they would condemn it again. One that has
    expired lets it in only while the last good revision serves at full count.
    """
    entry = quarantine.find(entries, revision)
    if entry is None or revision == scene.last_good:
        return None
    lifted = quarantine.is_lifted(entry, scene.model)
    if not lifted and not quarantine.is_expired(entry, scene.now):
        return entry
    swapped_in = scene.going is not None and scene.going.revision == revision
    if swapped_in or scene.observed.carries(revision):  # it is being tried again
        return None
    if lifted:
        return entry if scene.observed.has_pods(entry.revision) else None
    full = scene.last_good is not None and assessment.is_complete(scene.observed.workload, scene.last_good)
    return None if full and scene.observed.wants_pods else entry


def stays(scene: Scene, entry: Quarantined) -> bool:
    """Whether a quarantined revision stays where it is, because nothing may be moved."""
    return scene.observed.carries(entry.revision) and not scene.may_move

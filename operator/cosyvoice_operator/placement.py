"""Where a revision runs: whose pod template the Deployment carries for it, and what that template's pods load. Pure.

By itself a revision runs in pods of its own template. In place, it runs in pods of the template that the last good
revision is served by: that template stays in the Deployment, and its live ConfigMap names what is loaded instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from msgspec import structs

from cosyvoice_operator import (
    assessment,
    attempt,
    eligibility,
    failures,
    manifests,
    progress,
    revision,
    swapping,
    times,
)
from cosyvoice_operator.api_status import RolloutRecord
from cosyvoice_operator.assessment import Assessment
from cosyvoice_operator.condemned import Scene
from cosyvoice_operator.failures import Failure
from cosyvoice_operator.observed import Pod
from cosyvoice_operator.revision import Policy
from cosyvoice_operator.swap import SwapStep

AUTO = "Auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """`revision` in pods of `template`, whose live ConfigMap names `current` and `candidate`.

    `obstacle`: why it is not swapped in though that was asked for.
    """

    revision: str
    template: str
    current: str
    candidate: str | None
    record: RolloutRecord
    swap: SwapStep | None = None
    obstacle: str | None = None


def place(scene: Scene, policy: Policy, wanted: str, lack: Failure | None, *, returning: bool) -> Placement:
    """Where `wanted` is to run. `lack` and `returning` are as in `attempt.record`."""
    swaps, obstacle = _swaps(scene, policy, wanted, lack)
    record = attempt.record(scene.model, wanted, lack, scene.now, returning=returning, swaps=swaps)
    template = _template(scene, wanted, record)
    placed = Placement(
        revision=wanted, template=template, current=wanted, candidate=None, record=record, obstacle=obstacle
    )
    live = scene.observed.live(template)
    if scene.model.spec.paused:
        candidate = live.candidate if live else None
        return replace(placed, current=scene.observed.loads(template), candidate=candidate)
    step = swapping.toward(scene.model, scene.observed, template, record, scene.now)
    if step is None:  # a template that comes back for a swap loads what it did, until a pod has tried the other one
        return replace(placed, current=scene.observed.loads(template)) if swaps else placed
    tried = structs.replace(
        record,
        attempt=step.attempt.number,
        tries=step.attempt.tries,
        started_at=times.write(step.attempt.started),
        serving_since=times.write(step.attempt.serving) if step.attempt.serving else None,
    )
    return replace(placed, current=step.current, candidate=step.candidate, record=tried, swap=step)


def tell(placed: Placement, version: str, verdict: Assessment) -> Assessment:
    """`verdict`, on a rollout that goes on, with what there is to say about the swap."""
    if not verdict.progressing or verdict.failures or verdict.reason == assessment.NO_CAPACITY:
        return verdict
    if placed.swap is not None and not placed.swap.done:
        silent = placed.swap.silent
        told = replace(verdict, reason=placed.swap.reason, message=f"{version}: {placed.swap.message}")
        return replace(told, progressing=not silent, stalled=silent)
    if placed.obstacle is not None and verdict.reason != progress.CREATING:
        return replace(verdict, message=f"{verdict.message} (not swapped in place: {placed.obstacle})")
    return verdict


def home(scene: Scene) -> str | None:
    """The template whose pods serve the last good revision, or did; None where there is nothing to go back to.

    Where somebody deleted the revision that this template is of, no new pod can mount its configuration: the last good
    revision then gets pods of its own.
    """
    workload, status = scene.observed.workload, scene.model.status
    if status.last_good_revision is None:
        return None
    if workload is not None and workload.revision == status.last_good_revision:
        lives = workload.template is None or scene.observed.stored(workload.template) is not None
        return workload.carrier if lives or scene.back is None else status.last_good_revision
    candidates = (status.last_good_template, status.last_good_revision)
    return next((name for name in candidates if scene.observed.stored(name) is not None), None)


def _template(scene: Scene, wanted: str, record: RolloutRecord) -> str:
    """Whose pod template the Deployment gets."""
    workload, last_good = scene.observed.workload, scene.last_good
    place = home(scene)
    if place is not None and (wanted == last_good or record.strategy == attempt.HOT_SWAP):
        return place
    pods_go = record.strategy == attempt.REPLACE and wanted != last_good
    if workload is not None and workload.carrier is not None and workload.revision == wanted and not pods_go:
        return workload.carrier
    return wanted


def _swaps(scene: Scene, policy: Policy, wanted: str, lack: Failure | None) -> tuple[bool, str | None]:
    """Whether `wanted` goes into the pods that run, and if not though it was asked for, why.

    What a rollout began with it keeps to, but for want of room.
    """
    asked, status = scene.model.spec.rollout, scene.model.status
    place, before = home(scene), status.rollout
    if asked.strategy not in revision.SWAPPING_STRATEGIES or wanted == scene.last_good or place is None:
        return False, None
    obstacle = _obstacle(scene, policy, place, wanted)
    if obstacle is not None:
        return False, obstacle if asked.strategy == attempt.HOT_SWAP else None
    begun = before.strategy if before is not None and before.revision == wanted else None
    pods = [pod for pod in scene.observed.pods if pod.carrier == place]
    ready = any(pod.ready for pod in pods)
    if begun == attempt.HOT_SWAP:
        if not ready and any(_fails(pod) for pod in pods):
            return False, "the replicas that are to try it fail themselves"
        return lack is None or asked.on_no_capacity != attempt.REPLACE, None
    if not ready:
        return False, "no replica is ready to try it" if begun is None else None
    if asked.strategy == AUTO:
        return begun != attempt.REPLACE and lack is not None, None
    return begun is None, None


def _fails(pod: Pod) -> bool:
    """Whether the pod will not become ready with what it loads, as far as can be told."""
    failure = failures.of_pod(pod)
    return failure is not None and failure.counts(deadline_exceeded=False)


def _obstacle(scene: Scene, policy: Policy, carrier: str, wanted: str) -> str | None:
    serving, stored = scene.observed.stored(carrier), scene.observed.stored(wanted)
    if serving is None:
        return f"the revision {carrier} is not stored any more"
    template = stored.template if stored else None
    if template is None:
        resolved = revision.resolve(scene.model.spec, policy)
        template = manifests.pod_template(scene.model.name, wanted, resolved)
    return eligibility.obstacle(serving.template, template)

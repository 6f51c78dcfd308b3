"""The swap that goes on, as the status recorded it, and what it means for the rest of a pass. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cosyvoice_operator import assessment, attempt, eligibility, swap, times
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import RolloutRecord
from cosyvoice_operator.failures import Failure, Verdict
from cosyvoice_operator.judgement import Judgement
from cosyvoice_operator.observed import Observed
from cosyvoice_operator.swap import Attempt, Goal, SwapStep

# So long may a pod that starts still see the documents of before: the kubelet refreshes a ConfigMap in its own time.
SEEN_AFTER = timedelta(seconds=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapping:
    """`revision` is on its way into the pods that run, or has arrived there; `step` is how that goes."""

    revision: str
    started: datetime
    step: SwapStep


def under_way(model: Model, observed: Observed, now: datetime) -> Swapping | None:
    """The swap that was recorded, if it concerns the pods that the Deployment has now."""
    record, workload = model.status.rollout, observed.workload
    if record is None or workload is None or workload.carrier is None or model.spec.paused:
        return None
    if record.strategy != attempt.HOT_SWAP and record.revision != workload.revision:
        return None
    step = toward(model, observed, workload.carrier, record, now)
    if step is None:
        return None
    return Swapping(revision=record.revision, started=times.read(record.started_at) or now, step=step)


def toward(model: Model, observed: Observed, template: str, record: RolloutRecord, now: datetime) -> SwapStep | None:
    """The next step to the recorded revision in the pods of `template`; None where nothing is to be done in place."""
    stored, workload = observed.stored(template), observed.workload
    if stored is None or workload is None or workload.carrier != template:
        return None
    if not eligibility.has_stager(stored.template) or not _concerns(observed, template, record.revision):
        return None
    wanted = observed.stored(record.revision)
    goal = Goal(
        template=template,
        revision=record.revision,
        version=model.spec.version if wanted is None else wanted.version,
        deadline=timedelta(seconds=model.spec.rollout.progress_deadline_seconds),
        proven=record.revision == model.status.last_good_revision,
        served=_served(model, record.revision),
    )
    started = times.read(record.started_at) or now
    serving = times.read(record.serving_since)
    attempted = Attempt(number=record.attempt, started=started, tries=record.tries, serving=serving)
    return swap.plan(observed, goal, attempted, now)


def unfinished(model: Model, observed: Observed, going: Swapping | None) -> Observed:
    """`observed`, with a Deployment that is not done as long as the swap is not: Kubernetes knows nothing of it.

    While the model is paused no swap goes on, so none that had begun is done before that ends.
    """
    workload, record = observed.workload, model.status.rollout
    stopped = model.spec.paused and record is not None and record.strategy == attempt.HOT_SWAP
    revision = record.revision if stopped and record is not None else None if going is None else going.revision
    done = going.step.done if going is not None else revision == model.status.last_good_revision
    if workload is None or revision is None or workload.revision != revision:
        return observed
    # A pod that was lost a moment ago still counts in the Deployment's status.
    serving = sum(pod.ready for pod in observed.pods if pod.revision == revision)
    if done and serving >= workload.replicas:
        return observed
    return replace(observed, workload=replace(workload, updated=min(workload.updated, workload.replicas - 1)))


def judge(going: Swapping, pods: Judgement) -> Judgement:
    """The judgement on the revision that is swapped in; `pods` is the one on its pods.

    What ended in a pod before all were to load it, or before a pod could see that, was another revision's fault.
    """
    if going.step.room_refused:
        return Judgement(revision=going.revision)
    if going.step.failures:
        step = going.step
        return Judgement(revision=going.revision, failures=step.failures, condemned=step.condemned)
    own = going.started + SEEN_AFTER
    found = tuple(failure for failure in pods.failures if failure.time is None or failure.time >= own)
    return replace(pods, failures=found, condemned=pods.condemned and found[:1] == pods.failures[:1])


def lack(going: Swapping | None, revision: str) -> Failure | None:
    """The want of memory that keeps `revision` from being swapped in, if that is all it waits for."""
    if going is None or going.revision != revision or not going.step.room_refused:
        return None
    refused = going.step.failures[0]
    message = f"Insufficient memory for a second engine beside the one that serves: {refused.message}"
    return replace(refused, verdict=Verdict.EXTERNAL, reason=assessment.NO_CAPACITY, message=message)


def _concerns(observed: Observed, template: str, revision: str) -> bool:
    """Whether pods of `template` have been, or are to be, told to load something in place, or serve something else."""
    live = observed.live(template)
    if template != revision or (live is not None and (live.candidate is not None or live.current != revision)):
        return True
    pods = [pod for pod in observed.pods if pod.carrier == template]
    return any(pod.order is not None or pod.revision != revision for pod in pods)


def _served(model: Model, revision: str) -> bool:
    """Whether every pod served `revision` when they were last looked at."""
    status = model.status
    if status.is_true("RolledBack"):
        return revision == status.last_good_revision
    settled = status.is_true("Ready") or status.reason == assessment.PINNED
    return settled and revision == status.target_revision

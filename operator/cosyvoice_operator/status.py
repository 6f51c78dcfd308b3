"""The status that one pass writes: what was decided, what was seen, and what is kept of earlier passes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from cosyvoice_operator import assessment, conditions, names, throttling, times
from cosyvoice_operator.api import Identity, Model
from cosyvoice_operator.api_status import FailureRecord, Load, Staged, Status
from cosyvoice_operator.assessment import Assessment
from cosyvoice_operator.failures import Failure
from cosyvoice_operator.observed import Observed, Pod
from cosyvoice_operator.pin import Wanted
from cosyvoice_operator.rollout import Decision

MAX_FAILURES = 10


def report(model: Model, observed: Observed, decision: Decision, now: datetime) -> Status:
    """The status after this pass. It equals the one before where nothing happened: then there is nothing to write."""
    previous, verdict = model.status, decision.assessment
    pods = observed.pods_of(decision.target)
    staged = _staged(previous, decision.target, pods)
    workload = observed.workload
    pinned = decision.target if observed.stored(model.rollback_to) else None
    ready = workload.ready if workload else 0
    wanted = workload.replicas if workload else model.spec.worker.replicas
    return Status(
        observed_generation=model.identity.generation,
        observed_retry=model.retry,
        observed_rollback_to=model.rollback_to,
        active_version=decision.active_version,
        active_revision=decision.active_revision,
        target_version=decision.wanted.version,
        target_revision=decision.target,
        last_good_revision=decision.last_good,
        last_good_template=decision.last_good_template,
        replicas=workload.total if workload else 0,
        ready_replicas=ready,
        ready=f"{ready}/{wanted}",
        reason=verdict.reason,
        message=verdict.message[: conditions.MAX_MESSAGE],
        selector=",".join(f"{label}={value}" for label, value in names.selector_labels(model.name).items()),
        staged=staged,
        load=_load(previous, decision.target, pods),
        failures=_failures(model, decision),
        quarantine=decision.quarantine,
        rollout=decision.rollout,
        conditions=conditions.merge(
            previous,
            (
                *conditions.of_assessment(verdict),
                conditions.of_service(workload.available if workload else 0, decision.active_version),
                conditions.of_weights(staged, verdict),
                conditions.of_warm_up(_warmed_up(previous, decision.target, pods), model.spec.engine.preload, verdict),
                conditions.of_pin(pinned, decision.wanted.version),
                *throttling.conditions_of(model, decision.wanted, pods),
            ),
            model.identity.generation,
            times.write(now),
        ),
    )


def unreadable(identity: Identity, previous: Status, message: str, now: datetime) -> Status:
    """The status of a model whose spec cannot be read: everything known is kept, nothing is decided."""
    verdict = Assessment(reason=assessment.INVALID_SPEC, message=message, stalled=True)
    judged = conditions.merge(previous, conditions.of_assessment(verdict), identity.generation, times.write(now))
    kept = [condition for condition in previous.conditions if condition.type not in {new.type for new in judged}]
    return replace(
        previous,
        observed_generation=identity.generation,
        reason=verdict.reason,
        message=message[: conditions.MAX_MESSAGE],
        conditions=(*judged, *kept),
    )


def _staged(previous: Status, target: str, pods: tuple[Pod, ...]) -> Staged | None:
    """What the first pod of the target to stage its weights reported; kept as long as the target stays."""
    if previous.staged is not None and previous.staged.revision == target:
        return previous.staged
    swapped = next((pod for pod in pods if pod.carrier != target and pod.status and pod.status.digest), None)
    if swapped is not None and swapped.status is not None:
        told = swapped.status
        return Staged(
            revision=target,
            digest=told.digest,
            bytes=told.staged_bytes,
            seconds=told.staged_seconds,
            pod=swapped.name,
            node=swapped.node,
        )
    pod = next((pod for pod in pods if pod.carrier == target and pod.stage.succeeded), None)
    if pod is None or pod.stage.ended is None:
        return None
    said = pod.stage.ended.said
    return Staged(
        revision=target,
        digest=said.digest,
        bytes=said.bytes,
        seconds=said.elapsed_seconds,
        pod=pod.name,
        node=pod.node,
    )


def _load(previous: Status, target: str, pods: tuple[Pod, ...]) -> Load | None:
    """Where the time of the first pod of the target to become ready went; kept as long as the target stays."""
    if previous.load is not None and previous.load.revision == target:
        return previous.load
    pod = next((pod for pod in pods if pod.ready and pod.status), None)
    if pod is None or pod.status is None:
        return None
    seconds = pod.status.load
    if pod.carrier != target:
        return Load(revision=target, pod=pod.name, **_phases(seconds), total=seconds.get("total"))
    return Load(
        revision=target,
        pod=pod.name,
        schedule=_seconds(pod.created, pod.scheduled),
        stage=pod.stage.ended.said.elapsed_seconds if pod.stage.ended else None,
        **_phases(seconds),
        total=_seconds(pod.created, pod.ready_since),
    )


def _phases(seconds: Mapping[str, float]) -> dict[str, Any]:
    return {
        "import_": seconds.get("import"),
        "map": seconds.get("map"),
        "build": seconds.get("build"),
        "warm_up": seconds.get("warmUp"),
    }


def _seconds(start: datetime, end: datetime | None) -> float | None:
    """From one to the other; None where clocks that disagree put the end first: nothing can be said then."""
    return None if end is None or end < start else (end - start).total_seconds()


def _warmed_up(previous: Status, target: str, pods: tuple[Pod, ...]) -> bool:
    kept = previous.target_revision == target and previous.is_true(conditions.WARMED_UP)
    return kept or any(pod.ready for pod in pods)


def _failures(model: Model, decision: Decision) -> tuple[FailureRecord, ...]:
    """The newest failures, one entry for each revision, reason, file and tensor, with its latest occurrence."""
    about = decision.assessment.about or decision.wanted
    new = [_record(about, failure) for failure in decision.assessment.failures if failure.time]
    kept: dict[tuple[str | None, ...], FailureRecord] = {}
    for record in sorted((*model.status.failures, *new), key=lambda record: record.time or ""):
        kept[_key(record)] = record
    newest_first = sorted(kept.values(), key=lambda record: (record.time or "", _key(record)[1]), reverse=True)
    return tuple(newest_first[:MAX_FAILURES])


def _key(record: FailureRecord) -> tuple[str, str, str, str]:
    return (record.revision, record.reason, record.file or "", record.tensor or "")


def _record(about: Wanted, failure: Failure) -> FailureRecord:
    said = failure.said
    return FailureRecord(
        revision=about.revision,
        version=about.version,
        reason=failure.reason,
        message=assessment.describe(failure)[: conditions.MAX_MESSAGE],
        file=said.file,
        tensor=said.tensor,
        expected=said.expected,
        actual=said.actual,
        pod=failure.pod,
        node=failure.node,
        time=times.write(failure.time) if failure.time else None,
    )

"""Whether a revision is condemned by what its pods show: its failures, and the time they have taken.

Time counts from the end of staging: how long staging takes is the source's affair, and `stage` has a limit of its own.
Nobody is condemned for a wait that something else explains.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime, timedelta

from cosyvoice_operator import failures
from cosyvoice_operator.failures import Failure, Verdict
from cosyvoice_operator.observed import Observed, Pod

PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"

_NOT_ITS_FAULT = frozenset({Verdict.BLOCKED, Verdict.EXTERNAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is wrong with `revision`, gravest first, and whether that takes it out of service.

    `exceeded`: the Deployment itself says that nothing has moved for too long.
    """

    revision: str
    failures: tuple[Failure, ...] = ()
    condemned: bool = False
    exceeded: bool = False


def judge(
    observed: Observed, revision: str, deadline_seconds: int, now: datetime, *, proven: bool = False
) -> Judgement:
    """The judgement on `revision`, whose pods may take `deadline_seconds` to be ready once their weights are staged.

    `proven`: it has served before, so no deadline is left to be kept.
    """
    deadline = timedelta(seconds=deadline_seconds)
    workload = observed.workload
    pods = observed.pods_of(revision)
    exceeded = workload is not None and workload.carries(revision) and workload.deadline_exceeded
    found = failures.find(observed, revision)
    late = () if proven or _is_blocked(found) else tuple(pod for pod in pods if _is_late(pod, deadline, now))
    silent = next((pod for pod in late if failures.of_pod(pod) is None), None)
    if silent is not None:
        found = (*found, _is_not_ready(silent, deadline_seconds))
    late_names = {pod.name for pod in late}
    aged = {pod.name for pod in pods if now - max(pod.created, pod.unready_since or pod.created) > deadline}
    found = tuple(sorted(found, key=lambda failure: (failure.rank, failure.pod not in late_names)))
    return Judgement(
        revision=revision,
        failures=found,
        condemned=bool(found) and _counts(found[0], late_names, aged, exceeded=exceeded),
        exceeded=exceeded,
    )


def _counts(failure: Failure, late: Container[str | None], aged: Container[str | None], *, exceeded: bool) -> bool:
    if failure.verdict is Verdict.RETRYABLE and failure.pod in late:
        return True
    return failure.counts(deadline_exceeded=exceeded or failure.pod in aged)


def _is_blocked(found: tuple[Failure, ...]) -> bool:
    return any(failure.verdict is Verdict.BLOCKED for failure in found)


def _is_late(pod: Pod, deadline: timedelta, now: datetime) -> bool:
    """Whether the pod has had its weights for longer than the deadline, and has only itself to blame."""
    staged = pod.stage.ended.finished_at if pod.stage.succeeded and pod.stage.ended else None
    if pod.ready or staged is None:
        return False
    # The node's clock may be behind: no pod has been staged before it was there.
    if now - max(staged, pod.unready_since or staged, pod.created) <= deadline:
        return False
    other = failures.of_pod(pod)
    return other is None or other.verdict not in _NOT_ITS_FAULT


def _is_not_ready(pod: Pod, seconds: int) -> Failure:
    step = f" (it is at {pod.status.phase})" if pod.status else ""
    return Failure(
        verdict=Verdict.RETRYABLE,
        reason=PROGRESS_DEADLINE_EXCEEDED,
        message=f"not ready within {seconds} s after its weights were staged{step}",
        pod=pod.name,
        node=pod.node,
    )

"""What is wrong with a revision's pods, and whose fault it is.

Only what counts against a revision may ever take it out of service; a full cluster or a missing claim never does.

    verdict      examples                                                        counts against the revision
    Fatal        exit codes 64, 65, 66, 70, 77                                   at once
    Retryable    out of memory, signals, exit codes 71, 72, 73, any other        after RETRIES restarts of a pod
    AtDeadline   exit code 69 (source unreachable), images that do not come      at the progress deadline
    Blocked      no such claim, a claim that cannot be shared                    never; someone has to act
    External     no room, quota, mounts, configuration of others, lost nodes     never
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field, replace
from datetime import datetime

from cosyvoice_operator import names
from cosyvoice_operator.observed import Claim, Container, Ended, Observed, Pod, Workload
from cosyvoice_operator.termination import Termination, clean

RETRIES = 3
UNSCHEDULABLE = "Unschedulable"
FAILED_CREATE = "FailedCreate"

IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
CONTAINER_REASONS = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})

_MOUNT_TROUBLE = ("node affinity", "multi-attach", "already exclusively attached", "anti-affinity", "readwriteoncepod")
# The name is another one at every try.
_POD_NAME = re.compile(r'^pods "[^"]*" is ')
_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}

# The reason for an exit code whose container left no message that could be read.
_REASON_OF_CODE = {
    64: "InvalidConfig",
    65: "CorruptFile",
    66: "IncompatibleModel",
    69: "SourceUnreachable",
    70: "WarmUpFailed",
    71: "OutOfMemory",
    72: "LoadTimeout",
    73: "EngineDied",
    77: "AccessDenied",
}


class Verdict(enum.StrEnum):
    """Whose fault a failure is; the table above. In order of gravity."""

    FATAL = "Fatal"
    BLOCKED = "Blocked"
    RETRYABLE = "Retryable"
    AT_DEADLINE = "AtDeadline"
    EXTERNAL = "External"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One thing that keeps a revision from being ready. `time` is set where a container ended."""

    verdict: Verdict
    reason: str
    message: str
    said: Termination = field(default_factory=Termination)
    pod: str | None = None
    node: str | None = None
    time: datetime | None = None
    restarts: int = 0
    since: datetime | None = None  # where a pod waits for room: since when

    @property
    def rank(self) -> tuple[int, int]:
        """Sorts failures, gravest first."""
        return list(Verdict).index(self.verdict), -self.restarts

    def counts(self, *, deadline_exceeded: bool) -> bool:
        """Whether this condemns the revision."""
        return (
            self.verdict is Verdict.FATAL
            or (self.verdict is Verdict.RETRYABLE and self.restarts >= RETRIES)
            or (self.verdict is Verdict.AT_DEADLINE and deadline_exceeded)
        )


def find(observed: Observed, revision: str) -> tuple[Failure, ...]:
    """Everything that keeps `revision` from being ready, gravest first, in an order that does not change by itself."""
    pods = observed.pods_of(revision)
    found = [
        *(failure for pod in pods if (failure := of_pod(pod))),
        *of_claim(observed.claim, pods),
        *_of_replica_set(observed.workload, revision),
    ]
    return tuple(sorted(found, key=lambda failure: failure.rank))


def of_pod(pod: Pod) -> Failure | None:
    """What keeps this pod from being ready, if anything but time does."""
    if pod.ready:
        return None
    if pod.lost:
        return _failure(pod, Verdict.EXTERNAL, pod.lost, f"pod failed: {pod.lost_message or pod.lost}")
    if pod.unschedulable:
        words = clean(pod.unschedulable, 500)
        return replace(
            _failure(pod, Verdict.EXTERNAL, UNSCHEDULABLE, f"no node takes the pod: {words}"), since=pod.created
        )
    if pod.node_down:
        return _failure(pod, Verdict.EXTERNAL, "NodeNotReady", f"its node is not ready: {clean(pod.node_down, 300)}")
    return (
        _of_container(pod, pod.stage, names.STAGE_CONTAINER)
        or _of_container(pod, pod.worker, names.WORKER_CONTAINER)
        or _of_mount(pod)
        or next((failure for failure in (_of_other(pod, *other) for other in pod.others) if failure), None)
    )


def of_swap(pod: Pod, said: Termination, tries: int, time: datetime | None) -> Failure:
    """Why a pod did not load another revision in place, in its worker's words; `tries` failed before this one."""
    code = names.WORKER_EXIT_CODES.get(said.reason or "", 0)
    reason = said.reason if said.reason and code else "EngineDied"
    return Failure(
        verdict=_verdict_of_code(code or names.WORKER_EXIT_CODES["EngineDied"]),
        reason=reason,
        message=said.message or f"the worker could not load it: {reason}",
        said=said,
        pod=pod.name,
        node=pod.node,
        time=time,
        restarts=tries,
    )


def of_eviction(pod: Pod, version: str) -> Failure:
    """A pod that its node threw out while it was to load `version` in place."""
    words = clean(pod.lost_message, 300) or pod.lost
    message = f"{pod.name} was evicted from {pod.node} while it was to load {version}: {words}"
    return _failure(pod, Verdict.EXTERNAL, pod.lost or "", message)


def of_claim(claim: Claim | None, pods: tuple[Pod, ...]) -> tuple[Failure, ...]:
    """A claim that is missing, or that only one node can mount while the replicas are on several."""
    if claim is None:
        return ()
    if not claim.exists:
        message = (
            f"PersistentVolumeClaim {claim.name!r} of spec.source.uri does not exist: create it, or correct the uri"
        )
        return (Failure(verdict=Verdict.BLOCKED, reason="SourceNotFound", message=message),)
    waiting = next((pod for pod in pods if not pod.ready and _is_kept_from_the_volume(pod)), None)
    if not claim.exclusive or waiting is None or len(pods) < 2:
        return ()
    message = (
        f"PersistentVolumeClaim {claim.name!r} is {' and '.join(claim.access_modes)}: only one node can mount it, "
        "and the replicas are to run on several. Use a claim with ReadOnlyMany or ReadWriteMany, or set "
        "spec.worker.replicas to 1, or keep the replicas on one node with spec.worker.nodeSelector and "
        "spec.worker.antiAffinity None"
    )
    return (_failure(waiting, Verdict.BLOCKED, "SourceNotShareable", message),)


def _is_kept_from_the_volume(pod: Pod) -> bool:
    words = f"{pod.unschedulable or ''} {pod.mount_failure or ''}".lower()
    return any(trouble in words for trouble in _MOUNT_TROUBLE)


def _of_replica_set(workload: Workload | None, revision: str) -> tuple[Failure, ...]:
    if workload is None or workload.create_failure is None or not workload.carries(revision):
        return ()
    words = _POD_NAME.sub("", workload.create_failure)
    message = f"pods cannot be created: {clean(words, 500)}"
    since = workload.create_failure_since
    return (Failure(verdict=Verdict.EXTERNAL, reason=FAILED_CREATE, message=message, since=since),)


def _of_mount(pod: Pod) -> Failure | None:
    if pod.mount_failure is None:
        return None
    message = f"a volume cannot be mounted: {clean(pod.mount_failure, 500)}"
    return _failure(pod, Verdict.EXTERNAL, "FailedMount", message)


def _of_container(pod: Pod, container: Container, name: str) -> Failure | None:
    waiting = container.waiting_reason
    words = container.waiting_message or waiting
    if waiting in IMAGE_REASONS:
        return _failure(pod, Verdict.AT_DEADLINE, "ImagePullFailed", f"the image of {name} does not come: {words}")
    if waiting in CONTAINER_REASONS:
        return _failure(pod, Verdict.EXTERNAL, waiting, f"container {name} cannot be made: {words}")
    if container.ended is None or (container.ended.exit_code == 0 and name == names.STAGE_CONTAINER):
        return None
    verdict, reason, otherwise = _of_end(container.ended, name)
    said = container.ended.said
    return Failure(
        verdict=verdict,
        reason=reason,
        message=said.message or otherwise,
        said=said,
        pod=pod.name,
        node=pod.node,
        time=container.ended.finished_at,
        restarts=container.restarts,
    )


def _of_other(pod: Pod, name: str, container: Container) -> Failure | None:
    """A container that is not the operator's: it keeps the pod from being ready, and says nothing of a version."""
    where = f"container {name}, which is not the version's,"
    if container.waiting_reason in IMAGE_REASONS | CONTAINER_REASONS:
        words = f"{where} cannot be started: {container.waiting_message or container.waiting_reason}"
        return _failure(pod, Verdict.EXTERNAL, container.waiting_reason or "", words)
    if container.running or container.ended is None or container.ended.exit_code == 0:
        return None
    words = f"{where} ended with exit code {container.ended.exit_code} (restarted {container.restarts} times)"
    return _failure(pod, Verdict.EXTERNAL, "ContainerFailed", words)


def _of_end(ended: Ended, name: str) -> tuple[Verdict, str, str]:
    """Verdict, reason and what to say where the container said nothing. The exit code outranks the message."""
    code = ended.exit_code
    if ended.reason == "OOMKilled":
        return Verdict.RETRYABLE, "OutOfMemory", f"container {name} was killed at its memory limit"
    if ended.reason == "ContainerStatusUnknown":
        return Verdict.EXTERNAL, ended.reason, f"the node lost track of container {name}"
    if code in _REASON_OF_CODE:
        said = ended.said.reason
        reason = said if said and names.WORKER_EXIT_CODES[said] == code else _REASON_OF_CODE[code]
        return _verdict_of_code(code), reason, f"container {name} ended with exit code {code}"
    if code > 128:
        signal = _SIGNALS.get(code - 128, f"signal {code - 128}")
        return Verdict.RETRYABLE, "Crashed", f"container {name} was ended by {signal}"
    return Verdict.RETRYABLE, "Crashed", f"container {name} ended with exit code {code}"


def _verdict_of_code(code: int) -> Verdict:
    if code == names.EXIT_CODE_SOURCE_UNREACHABLE:
        return Verdict.AT_DEADLINE
    return Verdict.RETRYABLE if code in names.RETRYABLE_EXIT_CODES else Verdict.FATAL


def _failure(pod: Pod, verdict: Verdict, reason: str, message: str) -> Failure:
    return Failure(verdict=verdict, reason=reason, message=message, pod=pod.name, node=pod.node)

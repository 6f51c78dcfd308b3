"""Whose fault a failure is."""

from __future__ import annotations

from typing import Any

import pytest

from cosyvoice_operator import failures, names
from cosyvoice_operator.failures import Verdict
from cosyvoice_operator.observed import Claim, Container, Observed, Pod
from tests.unit.operator.builders import ended_container, pod, ready_pod, staged_container, workload


def judged(*, stage: Container | None = None, worker: Container | None = None, **fields: Any) -> tuple[str, str] | None:
    """Verdict and reason of a pod in this state."""
    failure = failures.of_pod(pod("r1", stage=stage or Container(), worker=worker or Container(), **fields))
    return None if failure is None else (failure.verdict, failure.reason)


@pytest.mark.parametrize(
    ("code", "said", "verdict", "reason"),
    [
        (64, "InvalidConfig", Verdict.FATAL, "InvalidConfig"),
        (65, "DigestMismatch", Verdict.FATAL, "DigestMismatch"),
        (65, "LFSPointer", Verdict.FATAL, "LFSPointer"),
        (65, None, Verdict.FATAL, "CorruptFile"),
        (66, "MissingTensor", Verdict.FATAL, "MissingTensor"),
        (66, None, Verdict.FATAL, "IncompatibleModel"),
        (69, "SourceUnreachable", Verdict.AT_DEADLINE, "SourceUnreachable"),
        (70, "NonFiniteAudio", Verdict.FATAL, "NonFiniteAudio"),
        (71, "OutOfSpace", Verdict.RETRYABLE, "OutOfSpace"),
        (72, None, Verdict.RETRYABLE, "LoadTimeout"),
        (73, "EngineDied", Verdict.RETRYABLE, "EngineDied"),
        (77, "AccessDenied", Verdict.FATAL, "AccessDenied"),
        (1, None, Verdict.RETRYABLE, "Crashed"),
        (2, "DigestMismatch", Verdict.RETRYABLE, "Crashed"),
        (65, "OutOfMemory", Verdict.FATAL, "CorruptFile"),  # the code outranks the message
        (135, None, Verdict.RETRYABLE, "Crashed"),
        (137, None, Verdict.RETRYABLE, "Crashed"),
        (139, None, Verdict.RETRYABLE, "Crashed"),
    ],
)
@pytest.mark.parametrize("container", ["stage", "worker"])
def test_an_exit_code_decides(container: str, code: int, said: str | None, verdict: Verdict, reason: str) -> None:
    assert judged(**{container: ended_container(code, reason=said)}) == (verdict, reason)


@pytest.mark.parametrize(
    ("state", "verdict", "reason"),
    [
        ({"worker": ended_container(137, kubelet="OOMKilled")}, Verdict.RETRYABLE, "OutOfMemory"),
        ({"stage": ended_container(137, kubelet="OOMKilled")}, Verdict.RETRYABLE, "OutOfMemory"),
        (
            {"worker": ended_container(137, kubelet="ContainerStatusUnknown")},
            Verdict.EXTERNAL,
            "ContainerStatusUnknown",
        ),
        ({"worker": ended_container(0, kubelet="Completed")}, Verdict.RETRYABLE, "Crashed"),
        ({"stage": Container(waiting_reason="ErrImagePull")}, Verdict.AT_DEADLINE, "ImagePullFailed"),
        ({"worker": Container(waiting_reason="ImagePullBackOff")}, Verdict.AT_DEADLINE, "ImagePullFailed"),
        ({"stage": Container(waiting_reason="InvalidImageName")}, Verdict.AT_DEADLINE, "ImagePullFailed"),
        (
            {"stage": Container(waiting_reason="CreateContainerConfigError")},
            Verdict.EXTERNAL,
            "CreateContainerConfigError",
        ),
        ({"unschedulable": "0/2 nodes are available"}, Verdict.EXTERNAL, "Unschedulable"),
        ({"mount_failure": "no such volume"}, Verdict.EXTERNAL, "FailedMount"),
        ({"lost": "Evicted", "lost_message": "low on memory"}, Verdict.EXTERNAL, "Evicted"),
        ({"lost": "Preempting"}, Verdict.EXTERNAL, "Preempting"),
        ({"others": (("proxy", Container(waiting_reason="ErrImagePull")),)}, Verdict.EXTERNAL, "ErrImagePull"),
        (
            {"others": (("proxy", Container(waiting_reason="CreateContainerConfigError")),)},
            Verdict.EXTERNAL,
            "CreateContainerConfigError",
        ),
        ({"others": (("proxy", ended_container(66, restarts=9)),)}, Verdict.EXTERNAL, "ContainerFailed"),
    ],
)
def test_what_is_around_a_pod_is_not_the_versions_fault(state: dict[str, Any], verdict: Verdict, reason: str) -> None:
    assert judged(**state) == (verdict, reason)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"stage": Container(running=True)},
        {"stage": Container(waiting_reason="PodInitializing")},
        {"stage": staged_container()},
        {"stage": staged_container(), "worker": Container(running=True)},
        {"others": (("proxy", Container(running=True)), ("init-proxy", ended_container(0)))},
    ],
)
def test_a_pod_that_only_needs_time_has_not_failed(state: dict[str, Any]) -> None:
    assert judged(**state) is None


def test_a_ready_pod_has_not_failed_whatever_it_went_through() -> None:
    assert failures.of_pod(ready_pod("r1", worker=ended_container(66, restarts=9))) is None


def test_a_container_that_runs_again_after_a_fatal_end_has_failed() -> None:
    again = Container(running=True, restarts=1, ended=ended_container(66, reason="MissingTensor").ended)

    assert judged(stage=staged_container(), worker=again) == (Verdict.FATAL, "MissingTensor")


@pytest.mark.parametrize(
    ("worker", "deadline_exceeded", "counts"),
    [
        (ended_container(66), False, True),
        (ended_container(71, restarts=2), False, False),
        (ended_container(71, restarts=3), False, True),
        (ended_container(137, restarts=3, kubelet="OOMKilled"), False, True),
        (ended_container(69, restarts=9), False, False),
        (ended_container(69), True, True),
        (Container(waiting_reason="ErrImagePull"), False, False),
        (Container(waiting_reason="ErrImagePull"), True, True),
        (Container(waiting_reason="CreateContainerConfigError"), True, False),
    ],
)
def test_what_counts_against_a_revision(worker: Container, deadline_exceeded: bool, counts: bool) -> None:
    failure = failures.of_pod(pod("r1", worker=worker))

    assert failure is not None
    assert failure.counts(deadline_exceeded=deadline_exceeded) is counts


def test_the_gravest_failure_comes_first_and_other_revisions_do_not_matter() -> None:
    observed = Observed(
        workload=workload("r2", create_failure="exceeded quota"),
        pods=(
            pod("r1", "old", worker=ended_container(64)),
            pod("r2", "waits", unschedulable="no room"),
            pod("r2", "crashed", worker=ended_container(71, restarts=1)),
            pod("r2", "broken", worker=ended_container(66)),
        ),
    )

    found = failures.find(observed, "r2")

    assert [failure.pod for failure in found] == ["broken", "crashed", "waits", None]
    assert found[-1].message == "pods cannot be created: exceeded quota"


def waiting(name: str, words: str) -> Pod:
    return pod("r1", name, node=None, scheduled=None, unschedulable=words)


ONE_NODE = Claim(name="voices", exists=True, access_modes=("ReadWriteOnce",))
MANY_NODES = Claim(name="voices", exists=True, access_modes=("ReadWriteOnce", "ReadOnlyMany"))


@pytest.mark.parametrize(
    ("claim", "pods", "reason"),
    [
        (None, (), None),
        (Claim(name="voices", exists=False), (), "SourceNotFound"),
        (ONE_NODE, (ready_pod("r1"), waiting("b", "didn't match the volume's node affinity")), "SourceNotShareable"),
        (ONE_NODE, (ready_pod("r1"), waiting("b", "didn't match pod anti-affinity rules")), "SourceNotShareable"),
        (ONE_NODE, (ready_pod("r1"), pod("r1", "b", mount_failure="Multi-Attach error")), "SourceNotShareable"),
        (ONE_NODE, (ready_pod("r1"), waiting("b", "Insufficient cpu")), None),
        (ONE_NODE, (waiting("b", "didn't match pod anti-affinity rules"),), None),
        (ONE_NODE, (ready_pod("r1"), ready_pod("r1", "b")), None),
        (MANY_NODES, (ready_pod("r1"), waiting("b", "didn't match pod anti-affinity rules")), None),
    ],
)  # fmt: skip
def test_a_claim_is_missing_or_cannot_be_shared(claim: Claim | None, pods: tuple[Pod, ...], reason: str | None) -> None:
    found = failures.of_claim(claim, pods)

    assert [failure.reason for failure in found] == ([reason] if reason else [])
    assert all(failure.verdict is Verdict.BLOCKED for failure in found)


def test_the_messages_about_claims_say_what_to_do() -> None:
    (missing,) = failures.of_claim(Claim(name="voices", exists=False), ())
    (exclusive,) = failures.of_claim(ONE_NODE, (ready_pod("r1"), waiting("b", "node affinity conflict")))

    assert missing.message == (
        "PersistentVolumeClaim 'voices' of spec.source.uri does not exist: create it, or correct the uri"
    )
    assert exclusive.message == (
        "PersistentVolumeClaim 'voices' is ReadWriteOnce: only one node can mount it, and the replicas are to run on "
        "several. Use a claim with ReadOnlyMany or ReadWriteMany, or set spec.worker.replicas to 1, or keep the "
        "replicas on one node with spec.worker.nodeSelector and spec.worker.antiAffinity None"
    )


def test_every_reserved_exit_code_of_the_worker_is_known() -> None:
    for code in {code for code in names.WORKER_EXIT_CODES.values() if code}:
        failure = failures.of_pod(pod("r1", worker=ended_container(code)))
        assert failure is not None
        assert failure.reason != "Crashed"

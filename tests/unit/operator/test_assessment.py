"""What the user is told: one reason and one message for each state a model can be in."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cosyvoice_operator import assessment
from cosyvoice_operator.api_status import Status
from cosyvoice_operator.assessment import Assessment, Hold
from cosyvoice_operator.observed import Claim, Container, NameConflict, Observed, WorkerStatus
from tests.unit.operator.builders import (
    assessed,
    ended_container,
    flags,
    full,
    model,
    pod,
    ready_pod,
    serving,
    staged_container,
    target_of,
    workload,
)

V1 = target_of(model())
IDLE = workload(V1, 2, total=2)


def assess(observed: Observed, status: Status | None = None, hold: Hold | None = None, **spec: Any) -> Assessment:
    return assessed(model(status=status, **spec), observed, hold)


@pytest.mark.parametrize(
    ("observed", "conditions", "reason", "message"),
    [
        (Observed(), "P", "Creating", "v1: waiting for the Deployment's pods"),
        (
            Observed(workload=IDLE, pods=(pod(V1, node=None, scheduled=None),)),
            "P",
            "Scheduling",
            "v1: 0 of 2 replicas ready; narrator-a waits for a node",
        ),
        (
            Observed(workload=IDLE, pods=(pod(V1), ready_pod(V1, "b"))),
            "P",
            "Staging",
            "v1: 1 of 2 replicas ready; narrator-a on node1 stages the weights",
        ),
        (
            Observed(workload=IDLE, pods=(pod(V1, stage=staged_container()),)),
            "P",
            "Loading",
            "v1: 0 of 2 replicas ready; narrator-a on node1 starts its worker",
        ),
        (
            Observed(
                workload=IDLE,
                pods=(
                    pod(
                        V1,
                        stage=staged_container(),
                        worker=Container(running=True),
                        status=WorkerStatus(phase="WarmUp"),
                    ),
                ),
            ),
            "P",
            "Loading",
            "v1: 0 of 2 replicas ready; narrator-a on node1 loads the model (WarmUp)",
        ),
        (
            Observed(workload=workload(V1, 1, total=1, updated=1), pods=(ready_pod(V1),)),
            "P",
            "RollingOut",
            "v1: 1 of 1 replicas ready; waiting for the replicas to be available",
        ),
        (serving(V1), "R", "Ready", "v1 serves with 2 of 2 replicas"),
        (
            Observed(workload=workload("old", 2, deadline_exceeded=True, create_failure="quota")),
            "P",
            "Creating",
            "v1: waiting for the Deployment's pods",
        ),
        (
            Observed(workload=workload(V1, 2, settled=False, deadline_exceeded=True, create_failure="quota")),
            "P",
            "Creating",
            "v1: waiting for the Deployment's pods",
        ),
        (
            Observed(
                workload=workload(V1, 1),
                pods=(pod(V1, "a", lost="Evicted", lost_message="low on memory"), pod(V1, "b")),
            ),
            "P",
            "Staging",
            "v1: 0 of 1 replicas ready; b on node1 stages the weights (in place of a: Evicted: low on memory)",
        ),
        (
            Observed(workload=workload(V1, 1), pods=(pod(V1, "a", lost="Evicted", lost_message="low on memory"),)),
            "P",
            "Evicted",
            "v1: pod failed: low on memory (pod a, node node1)",
        ),
        (
            Observed(workload=workload(V1, 2, deadline_exceeded=True), pods=(pod(V1),)),
            "SD",
            "ProgressDeadlineExceeded",
            "v1: no progress for 600 s; 0 of 2 replicas ready; narrator-a on node1 stages the weights",
        ),
        (
            Observed(workload=IDLE, pods=(pod(V1, node=None, scheduled=None, unschedulable="0/2 nodes: no cpu"),)),
            "P",
            "Unschedulable",
            "v1: no node takes the pod: 0/2 nodes: no cpu (pod narrator-a)",
        ),
        (
            Observed(
                workload=workload(V1, 2, deadline_exceeded=True),
                pods=(pod(V1, node=None, scheduled=None, unschedulable="0/2 nodes: no cpu"),),
            ),
            "S",
            "Unschedulable",
            "v1: no node takes the pod: 0/2 nodes: no cpu (pod narrator-a)",
        ),
        (
            Observed(workload=workload(V1, 2, create_failure='pods "x" is forbidden: exceeded quota: small')),
            "P",
            "FailedCreate",
            "v1: pods cannot be created: forbidden: exceeded quota: small",
        ),
        (
            Observed(workload=IDLE, claim=Claim(name="voices", exists=False)),
            "S",
            "SourceNotFound",
            "v1: PersistentVolumeClaim 'voices' of spec.source.uri does not exist: create it, or correct the uri",
        ),
        (
            Observed(
                workload=IDLE,
                pods=(pod(V1, stage=Container(waiting_reason="ErrImagePull", waiting_message="no such host")),),
            ),
            "P",
            "ImagePullFailed",
            "v1: the image of stage does not come: no such host (pod narrator-a, node node1)",
        ),
        (
            Observed(
                workload=IDLE,
                pods=(
                    pod(
                        V1,
                        stage=staged_container(),
                        worker=ended_container(
                            66,
                            reason="ShapeMismatch",
                            message="llm.pt: another shape than the model's",
                            file="llm.pt",
                            tensor="lm.weight",
                            expected="(2, 2)",
                            actual="(2, 1)",
                        ),
                    ),
                ),
            ),
            "SD",
            "NoPreviousVersion",
            "v1: llm.pt: another shape than the model's (tensor lm.weight, expected (2, 2), actual (2, 1), "
            "pod narrator-a, node node1); there is no earlier version to go back to",
        ),
        (
            Observed(workload=IDLE, pods=(pod(V1, worker=ended_container(137, kubelet="OOMKilled", restarts=1)),)),
            "P",
            "OutOfMemory",
            "v1: container worker was killed at its memory limit (pod narrator-a, node node1); trying again (1 of 3)",
        ),
        (
            Observed(workload=IDLE, pods=(pod(V1, worker=ended_container(139, restarts=3)),)),
            "SD",
            "NoPreviousVersion",
            "v1: container worker was ended by SIGSEGV (pod narrator-a, node node1); there is no earlier version to go "
            "back to",
        ),
        (
            Observed(conflicts=(NameConflict(kind="Service", namespace="speech", name="narrator"),)),
            "S",
            "NameConflict",
            "Service speech/narrator exists and is not owned by this CosyVoiceModel; delete it or give the model "
            "another name",
        ),
        (
            Observed(
                conflicts=tuple(
                    NameConflict(kind=kind, namespace="speech", name="narrator") for kind in ("Deployment", "Service")
                )
            ),
            "S",
            "NameConflict",
            "Deployment speech/narrator, Service speech/narrator exist and are not owned by this CosyVoiceModel; "
            "delete them or give the model another name",
        ),
        (
            Observed(conflicts=(NameConflict(kind="Service", namespace="speech", name="narrator", going=True),)),
            "P",
            "WaitingForDeletion",
            "waiting for the deletion of Service speech/narrator",
        ),
    ],
)
def test_each_state_has_its_words(observed: Observed, conditions: str, reason: str, message: str) -> None:
    verdict = assess(observed)

    assert (verdict.reason, verdict.message, flags(verdict)) == (reason, message, conditions)


def test_no_replicas_are_ready_when_none_are_wanted() -> None:
    verdict = assess(Observed(workload=full(V1, 0)), worker={"replicas": 0})

    assert (verdict.reason, verdict.message, flags(verdict)) == ("ScaledToZero", "v1: no replicas are wanted", "R")


@pytest.mark.parametrize(("wanted", "running"), [(2, 1), (1, 2), (2, 0), (0, 2)])
def test_a_scaled_model_is_not_ready_until_the_deployment_has_followed(wanted: int, running: int) -> None:
    assert not assess(serving(V1, running), worker={"replicas": wanted}).ready
    assert assess(serving(V1, wanted), worker={"replicas": wanted}).ready


def test_the_count_of_an_autoscaler_is_the_one_that_counts() -> None:
    autoscaled = dataclasses.replace(full(V1, 3), autoscaled=True)

    assert assess(serving(V1, 3, workload=autoscaled), worker={"replicas": 2}).ready


@pytest.mark.parametrize(
    "change",
    [
        {"updated": 1},
        {"available": 1},
        {"total": 3},
        {"settled": False},
        {"revision": "other"},
    ],
)
def test_a_rollout_is_complete_only_when_nothing_is_missing_or_left(change: dict[str, Any]) -> None:
    counts = {"total": 2, "updated": 2, "available": 2, "revision": V1, **change}

    assert not assessment.is_complete(workload(counts.pop("revision"), 2, **counts), V1)
    assert assessment.is_complete(full(V1), V1)
    assert not assessment.is_complete(None, V1)


@pytest.mark.parametrize(("stalled", "conditions"), [(False, ""), (True, "S")])
def test_what_holds_the_target_back_is_told(stalled: bool, conditions: str) -> None:
    verdict = assess(serving("other"), hold=Hold(reason="Why", message="v1 waits", stalled=stalled))

    assert (verdict.reason, verdict.message, flags(verdict)) == ("Why", "v1 waits", conditions)

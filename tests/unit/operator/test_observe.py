"""Reading what the API server returned."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from cosyvoice_operator.observe import Gathered, observe
from cosyvoice_operator.observe_pod import read_pod
from cosyvoice_operator.observed import Container, Ended, NameConflict, Pod, WorkerStatus
from cosyvoice_operator.termination import Termination
from tests.unit.operator.builders import model

IDENTITY = model().identity
NOON = "2026-11-30T12:00:00Z"
STAGED = '{"schema":1,"reason":"Staged"}'


def owned(
    kind: str, name: str, *, uid: str = "model-uid", owner: str = "CosyVoiceModel", **fields: Any
) -> dict[str, Any]:
    """An object of the model's."""
    labels = fields.pop("labels", {})
    reference = {"kind": owner, "name": "narrator", "uid": uid, "controller": True}
    metadata = {
        "name": name,
        "uid": f"{name}-uid",
        "labels": labels,
        "creationTimestamp": NOON,
        "ownerReferences": [reference],
        "generation": 2,
        **fields.pop("metadata", {}),
    }
    return {"kind": kind, "metadata": metadata, **fields}


def deployment(**status: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"cosyvoice.dev/revision": "r1"}}}
    spec = {"replicas": 3, "template": template}
    return owned("Deployment", "narrator", spec=spec, status={"observedGeneration": 2, **status})


def replica_set(name: str = "narrator-abc", revision: str = "r1", replicas: int = 1, **changes: Any) -> dict[str, Any]:
    return owned(
        "ReplicaSet",
        name,
        uid=changes.pop("uid", "narrator-uid"),
        owner="Deployment",
        labels={"cosyvoice.dev/revision": revision},
        spec={"replicas": replicas},
    )


def raw_pod(name: str = "narrator-abc-1", uid: str = "narrator-abc-uid", **changes: Any) -> dict[str, Any]:
    labels = {"cosyvoice.dev/revision": "r1", "cosyvoice.dev/version": "v1"}
    return owned("Pod", name, uid=uid, owner="ReplicaSet", labels=labels, **{"spec": {}, "status": {}, **changes})


def test_counts_and_conditions_of_the_deployment_are_read() -> None:
    conditions = [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
        {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"},
    ]
    raw = deployment(replicas=4, updatedReplicas=1, readyReplicas=3, availableReplicas=2, conditions=conditions)

    workload = observe(IDENTITY, Gathered(named=(raw,))).workload

    assert workload is not None
    assert (workload.revision, workload.replicas, workload.settled) == ("r1", 3, True)
    assert (workload.total, workload.updated, workload.ready, workload.available) == (4, 1, 3, 2)
    assert (workload.deadline_exceeded, workload.create_failure) == (True, "exceeded quota")


def test_a_deployment_that_its_controller_has_not_seen_is_not_settled() -> None:
    workload = observe(IDENTITY, Gathered(named=(deployment(observedGeneration=1),))).workload

    assert workload is not None
    assert not workload.settled


def managed(manager: str, subresource: str | None) -> dict[str, Any]:
    entry = {"manager": manager, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    return {"managedFields": [entry | ({"subresource": subresource} if subresource else {})]}


def test_only_a_scaler_takes_the_replicas_over() -> None:
    def autoscaled(manager: str, subresource: str | None) -> bool:
        raw = deployment()
        raw["metadata"] |= managed(manager, subresource)
        workload = observe(IDENTITY, Gathered(named=(raw,))).workload
        return workload is not None and workload.autoscaled

    assert autoscaled("kube-controller-manager", "scale")
    assert not autoscaled("kubectl-edit", None)
    assert not autoscaled("cosyvoice-operator", "scale")


def test_an_object_under_our_name_that_is_not_ours_is_a_conflict_and_nothing_else() -> None:
    foreign = deployment()
    foreign["metadata"]["ownerReferences"] = []
    of_a_deleted_model = owned("Service", "narrator", uid="older-uid")

    observed = observe(IDENTITY, Gathered(named=(foreign, of_a_deleted_model), replica_sets=(replica_set(),)))

    assert observed.workload is None
    assert observed.scaled_revisions == frozenset()
    assert observed.conflicts == (
        NameConflict(kind="Deployment", namespace="speech", name="narrator"),
        NameConflict(kind="Service", namespace="speech", name="narrator", going=True),
    )


def test_what_the_user_tied_to_the_model_is_a_conflict_that_lasts() -> None:
    tied = owned("Service", "narrator")
    tied["metadata"]["ownerReferences"][0]["controller"] = False

    (conflict,) = observe(IDENTITY, Gathered(named=(tied,))).conflicts

    assert not conflict.going


def test_pods_count_only_through_our_deployments_replica_sets() -> None:
    gathered = Gathered(
        named=(deployment(),),
        replica_sets=(replica_set(), replica_set("other", uid="other-deployment")),
        pods=(
            raw_pod("ours"),
            raw_pod("theirs", uid="other-uid"),
            raw_pod("going", metadata={"deletionTimestamp": NOON}),
        ),
    )

    assert [pod.name for pod in observe(IDENTITY, gathered).pods] == ["ours"]


def test_revisions_that_still_want_pods_are_known() -> None:
    sets = (replica_set(), replica_set("old", "r0", replicas=0))

    assert observe(IDENTITY, Gathered(named=(deployment(),), replica_sets=sets)).scaled_revisions == {"r1"}


def config_map(revision: str, created: str = NOON, **changes: Any) -> dict[str, Any]:
    labels = {"cosyvoice.dev/revision": revision, "cosyvoice.dev/version": "v1"}
    data = {"template.json": json.dumps({"spec": {}})}
    return owned("ConfigMap", f"narrator-{revision}", labels=labels, **{"data": data, **changes}) | {
        "metadata": {
            **owned("ConfigMap", f"narrator-{revision}", labels=labels)["metadata"],
            "creationTimestamp": created,
            **changes.get("metadata", {}),
        }
    }


def test_revisions_come_newest_first_and_only_ours_that_can_be_read() -> None:
    maps = (
        config_map("old", "2026-11-29T12:00:00Z"),
        config_map("new"),
        config_map("broken", data={"template.json": "{"}),
        config_map("empty", data={}),
        config_map("text", data={"template.json": "null"}),
        config_map("voices", metadata={"name": "narrator-old"}),
        config_map("foreign", metadata={"ownerReferences": []}),
        config_map("going", metadata={"deletionTimestamp": NOON}),
    )

    revisions = observe(IDENTITY, Gathered(config_maps=maps)).revisions

    assert [stored.revision for stored in revisions] == ["new", "old"]
    assert revisions[0].template == {"spec": {}}


def test_a_pod_in_full() -> None:
    raw = raw_pod(
        spec={"nodeName": "node1"},
        status={
            "podIP": "10.0.0.1",
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-30T12:00:01Z"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T12:00:09Z"},
            ],
            "initContainerStatuses": [
                {
                    "name": "stage",
                    "restartCount": 1,
                    "state": {"terminated": {"exitCode": 0, "reason": "Completed", "message": STAGED}},
                    "lastState": {"terminated": {"exitCode": 71}},
                }
            ],
            "containerStatuses": [{"name": "worker", "restartCount": 0, "state": {"running": {}}}],
        },
    )  # fmt: skip

    assert read_pod(raw, worker_status=WorkerStatus(phase="Ready")) == Pod(
        name="narrator-abc-1",
        revision="r1",
        version="v1",
        created=datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC),
        node="node1",
        address="10.0.0.1",
        scheduled=datetime(2026, 11, 30, 12, 0, 1, tzinfo=UTC),
        ready=True,
        ready_since=datetime(2026, 11, 30, 12, 0, 9, tzinfo=UTC),
        stage=Container(restarts=1, ended=Ended(exit_code=0, reason="Completed", said=Termination(reason="Staged"))),
        worker=Container(running=True),
        status=WorkerStatus(phase="Ready"),
    )


def test_crash_loop_back_off_hides_the_end_in_the_last_state() -> None:
    status = {
        "name": "worker",
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
        "lastState": {"terminated": {"exitCode": 66, "reason": "Error", "finishedAt": NOON}},
    }
    worker = read_pod(raw_pod(status={"containerStatuses": [status]})).worker

    assert (worker.waiting_reason, worker.restarts, worker.running) == ("CrashLoopBackOff", 4, False)
    assert worker.ended == Ended(exit_code=66, finished_at=datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC))


def test_containers_that_are_not_the_versions_are_read_apart() -> None:
    waits = {"name": "proxy", "state": {"waiting": {"reason": "ErrImagePull"}}}
    runs = {"name": "worker", "state": {"running": {}}}
    read = read_pod(raw_pod(status={"containerStatuses": [runs, waits], "initContainerStatuses": [{"name": "stage"}]}))

    assert (read.worker.running, read.others) == (True, (("proxy", Container(waiting_reason="ErrImagePull")),))


def test_what_became_of_a_pod_as_a_whole_is_read() -> None:
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    pending = read_pod(raw_pod(status={"phase": "Pending", "conditions": [unschedulable]}))
    evicted = read_pod(raw_pod(status={"phase": "Failed", "reason": "Evicted", "message": "low on\nmemory"}))

    assert (pending.unschedulable, pending.scheduled) == ("0/2 nodes", None)
    assert (evicted.lost, evicted.lost_message) == ("Evicted", "low on memory")


def test_a_pod_that_ends_in_peace_when_it_is_evicted_is_lost_all_the_same() -> None:
    """Its worker drains and exits with 0, so the kubelet calls the pod Succeeded: as if such a pod ever ended."""
    disruption = {
        "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": "low on disk",
    }  # fmt: skip
    told = read_pod(raw_pod(status={"phase": "Succeeded", "reason": "Evicted", "message": "low on disk"}))
    untold = read_pod(raw_pod(status={"phase": "Succeeded", "conditions": [disruption]}))
    neither = read_pod(raw_pod(status={"phase": "Succeeded"}))
    by_event = read_pod(raw_pod(status={"phase": "Succeeded"}), eviction="uses too much\nstorage")
    by_both = read_pod(raw_pod(status={"phase": "Succeeded", "conditions": [disruption]}), eviction="uses too much")
    alive = read_pod(raw_pod(status={"phase": "Running"}), eviction="of another pod of this name")

    assert (told.lost, told.lost_message) == ("Evicted", "low on disk")
    assert (untold.lost, untold.lost_message) == ("TerminationByKubelet", "low on disk")
    assert (neither.lost, neither.lost_message) == ("Succeeded", "")
    assert (by_event.lost, by_event.lost_message) == ("Evicted", "uses too much storage")
    assert (by_both.lost, by_both.lost_message) == ("Evicted", "low on disk")
    assert (alive.lost, alive.lost_message) == (None, "")


def test_a_pod_that_was_only_just_made_has_nothing_yet() -> None:
    raw = raw_pod()
    del raw["status"]

    assert read_pod(raw).stage == Container()

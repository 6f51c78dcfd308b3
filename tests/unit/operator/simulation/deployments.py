"""The Deployment and ReplicaSet controllers: which pods exist. After the rules of kube-controller-manager."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from tests.unit.operator.simulation.store import MODEL, NAMESPACE, Object, Store, timestamp

TERMINATION = timedelta(seconds=2)


class Deployments:
    """`quota` is how many pods may exist at once (None: any number).

    `on_new_set` is called with the template that no ReplicaSet has yet, and with the ReplicaSets there are.
    """

    def __init__(self, store: Store, on_new_set: Callable[[Object, list[Object]], None]) -> None:
        self._store = store
        self._on_new_set = on_new_set
        self._names = 0
        self.quota: int | None = None

    def step(self, now: datetime) -> None:
        """What both controllers do next."""
        self._collect(now)
        deployment = self._store.get("Deployment", MODEL)
        if deployment is not None:
            sets = self._store.children("ReplicaSet", deployment)
            self._roll(deployment, sets)
            for replica_set in self._store.children("ReplicaSet", deployment):
                self._scale_pods(replica_set, now)
            self._report(deployment, now)

    def next_time(self, now: datetime) -> datetime | None:
        """When something becomes due by the clock alone: a pod becomes available, a rollout too slow, a pod is gone."""
        times = [
            datetime.fromisoformat(pod["metadata"]["deletionTimestamp"]) + TERMINATION
            for pod in self._store.all("Pod")
            if "deletionTimestamp" in pod["metadata"]
        ]
        deployment = self._store.get("Deployment", MODEL)
        if deployment is not None:
            patience = timedelta(seconds=deployment["spec"]["minReadySeconds"])
            times += [since + patience for pod in self._store.all("Pod") if (since := ready_since(pod)) is not None]
            times.append(_deadline(deployment))
        return min((time for time in times if time > now), default=None)

    def kill(self, pod: Object, now: datetime) -> None:
        """Begin to delete a pod."""
        if "deletionTimestamp" not in pod["metadata"]:
            self._store.put({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": timestamp(now)}})

    def _collect(self, now: datetime) -> None:
        """Pods that have ended go, and so does what has lost its owner."""
        for kind, owners in (("ReplicaSet", ("Deployment",)), ("Pod", ("ReplicaSet",))):
            alive = {raw["metadata"]["uid"] for owner in owners for raw in self._store.all(owner)}
            for raw in self._store.all(kind):
                if raw["metadata"]["ownerReferences"][0]["uid"] not in alive:
                    if kind == "Pod":
                        self.kill(raw, now)
                    else:
                        self._store.remove(kind, raw["metadata"]["name"])
        for pod in self._store.all("Pod"):
            since = pod["metadata"].get("deletionTimestamp")
            if since is not None and datetime.fromisoformat(since) + TERMINATION <= now:
                self._store.remove("Pod", pod["metadata"]["name"])

    def _roll(self, deployment: Object, sets: list[Object]) -> None:
        spec = deployment["spec"]
        wanted, how = spec["replicas"], spec["strategy"]["rollingUpdate"]
        new = next((raw for raw in sets if raw["spec"]["template"] == spec["template"]), None)
        if new is None:
            self._on_new_set(spec["template"], sets)
            new = self._new_set(deployment)
            sets = [*sets, new]
        old = [raw for raw in sets if raw is not new]
        total = sum(raw["spec"]["replicas"] for raw in sets)
        have = new["spec"]["replicas"]
        count = wanted if have > wanted else have + max(0, min(wanted + how["maxSurge"] - total, wanted - have))
        if spec.get("paused"):
            count = min(have, wanted)
        if count != have:
            self._scale(new, count)
            return
        if spec.get("paused"):
            return
        least = wanted - how["maxUnavailable"]
        spare = total - least - (have - _available(new))
        for replica_set in old:  # first those that serve nobody
            idle = replica_set["spec"]["replicas"] - _available(replica_set)
            cut = max(0, min(idle, spare))
            spare -= cut
            self._scale(replica_set, replica_set["spec"]["replicas"] - cut)
        old = [self._store.get("ReplicaSet", raw["metadata"]["name"]) or raw for raw in old]
        spare = sum(_available(raw) for raw in (new, *old)) - least
        for replica_set in old:
            cut = max(0, min(replica_set["spec"]["replicas"], spare))
            spare -= cut
            self._scale(replica_set, replica_set["spec"]["replicas"] - cut)
        if have == wanted == _available(new):
            retired = [raw for raw in old if not raw["spec"]["replicas"] and not raw["status"]["replicas"]]
            for raw in retired[: max(0, len(retired) - spec["revisionHistoryLimit"])]:
                self._store.remove("ReplicaSet", raw["metadata"]["name"])

    def _new_set(self, deployment: Object) -> Object:
        self._names += 1
        template = deployment["spec"]["template"]
        metadata = {
            "name": f"{MODEL}-{self._names}",
            "namespace": NAMESPACE,
            "labels": template["metadata"]["labels"],
            "ownerReferences": [_owner(deployment)],
        }
        return self._store.put(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": metadata,
                "spec": {"replicas": 0, "template": template},
                "status": {"replicas": 0, "readyReplicas": 0, "availableReplicas": 0},
            }
        )

    def _scale(self, replica_set: Object, count: int) -> None:
        self._store.put({**replica_set, "spec": {**replica_set["spec"], "replicas": count}})

    def _scale_pods(self, replica_set: Object, now: datetime) -> None:
        pods = [raw for raw in self._store.children("Pod", replica_set) if is_active(raw)]
        missing = replica_set["spec"]["replicas"] - len(pods)
        failure = None
        for _ in range(missing):
            if (
                self.quota is not None
                and sum(raw["status"].get("phase") != "Failed" for raw in self._store.all("Pod")) >= self.quota
            ):
                failure = f'pods "{MODEL}-x" is forbidden: exceeded quota: pods, limited: pods={self.quota}'
                break
            self._new_pod(replica_set)
        # The least useful first: no node, not ready, the youngest.
        pods.sort(key=lambda raw: (bool(raw["spec"].get("nodeName")), ready_since(raw) is not None))
        for raw in pods[: max(0, -missing)]:
            self.kill(raw, now)
        pods = [raw for raw in self._store.children("Pod", replica_set) if is_active(raw)]
        ready = [since for raw in pods if (since := ready_since(raw)) is not None]
        deployment = self._store.get("Deployment", MODEL)
        patience = timedelta(seconds=deployment["spec"]["minReadySeconds"] if deployment else 0)
        status: dict[str, Any] = {
            "replicas": len(pods),
            "readyReplicas": len(ready),
            "availableReplicas": sum(since + patience <= now for since in ready),
        }
        if failure is not None:
            status["failure"] = failure
        newest = self._store.get("ReplicaSet", replica_set["metadata"]["name"]) or replica_set
        self._store.put({**newest, "status": status})

    def _new_pod(self, replica_set: Object) -> None:
        self._names += 1
        template = replica_set["spec"]["template"]
        metadata = {
            "name": f"{replica_set['metadata']['name']}-{self._names}",
            "namespace": NAMESPACE,
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"].get("annotations") or {},
            "ownerReferences": [_owner(replica_set)],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"], "status": {}}
        self._store.put(pod)

    def _report(self, deployment: Object, now: datetime) -> None:
        sets = self._store.children("ReplicaSet", deployment)
        new = next(raw for raw in sets if raw["spec"]["template"] == deployment["spec"]["template"])
        before = deployment.get("status") or {}
        counts = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": sum(raw["status"]["replicas"] for raw in sets),
            "updatedReplicas": new["status"]["replicas"],
            "readyReplicas": sum(raw["status"]["readyReplicas"] for raw in sets),
            "availableReplicas": sum(raw["status"]["availableReplicas"] for raw in sets),
        }
        conditions = [_progressing(deployment, counts, now)]
        if failure := next((raw["status"]["failure"] for raw in sets if "failure" in raw["status"]), None):
            conditions.append(
                {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": failure}
            )
        status = {**counts, "conditions": conditions}
        if status != before:
            self._store.put({**deployment, "status": status})


def is_active(pod: Object) -> bool:
    """Whether the pod counts as one of its ReplicaSet's."""
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") != "Failed"


def ready_since(pod: Object) -> datetime | None:
    """Since when the pod is ready, if it is."""
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "Ready" and condition["status"] == "True" and is_active(pod):
            return datetime.fromisoformat(condition["lastTransitionTime"])
    return None


def _available(replica_set: Object) -> int:
    available: int = replica_set["status"]["availableReplicas"]
    return min(available, replica_set["spec"]["replicas"])


def _owner(raw: Object) -> Object:
    metadata = raw["metadata"]
    return {"kind": raw["kind"], "name": metadata["name"], "uid": metadata["uid"], "controller": True}


def _progressing(deployment: Object, counts: Object, now: datetime) -> Object:
    """The condition, whose time of update is the time of the last progress."""
    before = deployment.get("status") or {}
    was = next((entry for entry in before.get("conditions", ()) if entry["type"] == "Progressing"), None)
    wanted = deployment["spec"]["replicas"]
    done = counts["updatedReplicas"] == counts["availableReplicas"] == counts["replicas"] == wanted
    moved = (
        was is None
        or before["observedGeneration"] != counts["observedGeneration"]
        or counts["updatedReplicas"] > before["updatedReplicas"]
        or counts["availableReplicas"] > before["availableReplicas"]
        or counts["replicas"] - counts["updatedReplicas"] < before["replicas"] - before["updatedReplicas"]
    )
    since = timestamp(now) if moved or was is None else was["lastUpdateTime"]
    reason = "ReplicaSetUpdated"
    if done or (was is not None and not moved and was["reason"] == "NewReplicaSetAvailable"):
        reason = "NewReplicaSetAvailable"
    elif not moved and now >= datetime.fromisoformat(since) + _patience(deployment):
        reason = "ProgressDeadlineExceeded"
    return {"type": "Progressing", "status": "True", "reason": reason, "lastUpdateTime": since}


def _patience(deployment: Object) -> timedelta:
    return timedelta(seconds=deployment["spec"]["progressDeadlineSeconds"])


def _deadline(deployment: Object) -> datetime:
    conditions = (deployment.get("status") or {}).get("conditions", ())
    since = next((entry["lastUpdateTime"] for entry in conditions if entry["type"] == "Progressing"), None)
    if since is None:
        return datetime.fromisoformat(deployment["metadata"]["creationTimestamp"])
    return datetime.fromisoformat(since) + _patience(deployment)

"""Plays the Deployment and the ReplicaSet controller for one Deployment, one small step at a time.

The rules are Kubernetes': a template has one ReplicaSet, whatever came in between; as many pods more as maxSurge
allows, as many less as maxUnavailable does; what is not ready goes first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.cluster import Cluster, Object
from cosyvoice_operator.errors import ConflictError

TEMPLATE_HASH = "pod-template-hash"
NODES = ("node-1", "node-2")


class DeploymentController:
    """The Deployment `name` of `namespace`, its ReplicaSets and their pods."""

    def __init__(self, admin: Cluster, namespace: str, name: str) -> None:
        self._admin = admin
        self._namespace = namespace
        self._name = name
        self._made = 0

    async def step(self) -> bool:
        """Take the next step. Whether there was one."""
        try:
            return await self._step()
        except ConflictError:  # the operator was faster: look again
            return True

    async def _step(self) -> bool:
        deployment = await self._admin.get("Deployment", self._namespace, self._name)
        if deployment is None:
            return False
        key = template_hash(deployment["spec"]["template"])
        sets = {raw["metadata"]["labels"][TEMPLATE_HASH]: raw for raw in await self._owned("ReplicaSet", deployment)}
        if key not in sets:
            await self._admin.create(_replica_set(deployment, key))
            return True
        pods = {found: await self._owned("Pod", raw) for found, raw in sets.items()}
        for found, size in sizes(deployment, key, sets, pods).items():
            if sets[found]["spec"]["replicas"] != size:
                sets[found]["spec"]["replicas"] = size
                await self._admin.replace(sets[found])
                return True
        for found, raw in sets.items():
            if await self._fill(raw, pods[found]):
                return True
        return await self._report(deployment, key, pods)

    async def _owned(self, kind: str, owner: Object) -> list[Object]:
        found = await self._admin.list(kind, self._namespace, labels=f"{names.LABEL_MODEL}={self._name}")
        uid = owner["metadata"]["uid"]
        return [raw for raw in found if raw["metadata"]["ownerReferences"][0]["uid"] == uid]

    async def _fill(self, replica_set: Object, pods: list[Object]) -> bool:
        """Make one pod more, or one less."""
        wanted: int = replica_set["spec"]["replicas"]
        if len(pods) < wanted:
            self._made += 1
            await self._admin.create(_pod(replica_set, self._made))
        elif len(pods) > wanted:
            goes = min(pods, key=lambda pod: (is_ready(pod), pod["metadata"]["name"]))
            await self._admin.delete("Pod", self._namespace, goes["metadata"]["name"])
        return len(pods) != wanted

    async def _report(self, deployment: Object, key: str, pods: Mapping[str, list[Object]]) -> bool:
        everyone = [pod for some in pods.values() for pod in some]
        ready = sum(map(is_ready, everyone))
        status = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": len(everyone),
            "updatedReplicas": len(pods[key]),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max(0, deployment["spec"]["replicas"] - ready),
        }
        said = {name: value for name, value in status.items() if value}  # as the API server keeps it
        if said == deployment.get("status", {}):
            return False
        await self._admin.replace({**deployment, "status": status}, subresource="status")
        return True


def sizes(deployment: Object, key: str, sets: Mapping[str, Object], pods: Mapping[str, list[Object]]) -> dict[str, int]:
    """How many pods each ReplicaSet is to have next; `key` is that of the Deployment's template."""
    wanted, strategy = deployment["spec"]["replicas"], deployment["spec"]["strategy"]["rollingUpdate"]
    size = {found: raw["spec"]["replicas"] for found, raw in sets.items()}
    room = wanted + strategy["maxSurge"] - sum(size.values())
    if size[key] > wanted or (size[key] < wanted and room > 0):
        return size | {key: min(wanted, size[key] + room)}
    ready = {found: sum(map(is_ready, some)) for found, some in pods.items()}
    least = wanted - strategy["maxUnavailable"]
    spare = sum(size.values()) - least - (size[key] - ready[key])
    for old in sorted(size.keys() - {key}):  # what is not ready serves nobody
        unhealthy = min(size[old] - ready[old], max(0, spare))
        size[old], spare = size[old] - unhealthy, spare - unhealthy
    spare = min(spare, sum(ready.values()) - least)
    for old in sorted(size.keys() - {key}):
        healthy = min(size[old], max(0, spare))
        size[old], spare = size[old] - healthy, spare - healthy
    return size


def template_hash(template: Object) -> str:
    """Equal for equal templates."""
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]


def is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _replica_set(deployment: Object, key: str) -> Object:
    template = deployment["spec"]["template"]
    labels = {**template["metadata"]["labels"], TEMPLATE_HASH: key}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": _metadata(deployment, f"{deployment['metadata']['name']}-{key}", labels),
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {**deployment["spec"]["selector"]["matchLabels"], TEMPLATE_HASH: key}},
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
    }


def _pod(replica_set: Object, number: int) -> Object:
    template = replica_set["spec"]["template"]
    metadata = _metadata(replica_set, f"{replica_set['metadata']['name']}-{number}", template["metadata"]["labels"])
    metadata["annotations"] = template["metadata"].get("annotations", {})
    # There is no kubelet to end it: deleted, it has to be gone at once.
    containers = [{**container, "lifecycle": None} for container in template["spec"]["containers"]]
    spec = {**template["spec"], "containers": containers, "terminationGracePeriodSeconds": 0}
    spec["nodeName"] = NODES[number % 2]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _metadata(owner: Object, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": owner["kind"], "controller": True}
    reference |= {field: owner["metadata"][field] for field in ("name", "uid")}
    return {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "labels": dict(labels),
        "ownerReferences": [reference],
    }

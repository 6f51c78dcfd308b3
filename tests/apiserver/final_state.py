"""What a model and everything around it came to, without what no two runs share: times, uids, names of pods."""

from __future__ import annotations

import json
import re
from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.cluster import Cluster
from tests.apiserver.deployment_controller import is_ready

CHILDREN = ("ConfigMap", "Service", "PodDisruptionBudget", "Deployment")

_TIMES = frozenset({"lastTransitionTime", "time", "since", "retryAfter", "startedAt", "servingSince"})
_UNLIKE = _TIMES | {"pod", "node", "load", "clusterIP", "clusterIPs"}
_ORDER = re.compile(r"\b([0-9a-f]{10}\.[0-9]+)\.[0-9]+\b")  # with the second at which it was given
_POD = re.compile(r"\bnarrator-[0-9a-f]{10}-[0-9]+ on node-[0-9]+|\bnarrator-[0-9a-f]{10}-[0-9]+\b")


async def of(admin: Cluster, namespace: str, model: str) -> dict[str, Any]:
    """By `Kind/name`: status and annotations of the model, metadata and spec or data of its children, its pods."""
    raw = await admin.get(names.KIND, namespace, model)
    assert raw is not None
    annotations = raw["metadata"].get("annotations", {})
    state: dict[str, Any] = {"model": {"status": raw["status"], "annotations": annotations}}
    for kind in CHILDREN:
        for child in await admin.list(kind, namespace, labels=names.LABEL_MODEL):
            state[f"{kind}/{child['metadata']['name']}"] = _without_status(child)
    # A pass between its staging and its failure writes a version's digest into its live ConfigMap too. Nobody reads
    # that any more: no pod runs the template, and the digest stands with the revision as well.
    carrier = state[f"Deployment/{model}"]["spec"]["template"]["metadata"]["labels"][names.LABEL_REVISION]
    read = f"ConfigMap/{names.live_name(model, carrier)}"
    state = {name: value for name, value in state.items() if name == read or not name.endswith("-live")}
    pods = await admin.list("Pod", namespace, labels=f"{names.LABEL_MODEL}={model}")
    state["pods"] = sorted((_pod(pod) for pod in pods), key=json.dumps)
    like: dict[str, Any] = _like(state, namespace)
    return like


def _without_status(child: dict[str, Any]) -> dict[str, Any]:
    metadata = {field: child["metadata"].get(field) for field in ("labels", "annotations")}
    # What was applied last is told by a hash over all of it, the owner's uid too.
    annotations = {**(metadata["annotations"] or {}), names.ANNOTATION_APPLIED: "..."}
    body = {name: value for name, value in child.items() if name in {"spec", "data", "immutable"}}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def _pod(raw: dict[str, Any]) -> dict[str, Any]:
    metadata = raw["metadata"]
    statuses = raw["status"].get("containerStatuses", ())
    return {
        "revision": metadata["labels"][names.LABEL_REVISION],
        "annotations": metadata.get("annotations", {}),
        "ready": is_ready(raw),
        "restarts": sum(status["restartCount"] for status in statuses),
    }


def _like(value: Any, namespace: str) -> Any:
    """`value` without what is never the same twice."""
    if isinstance(value, dict):
        return {name: _like(inner, namespace) for name, inner in value.items() if name not in _UNLIKE}
    if isinstance(value, list):
        return [_like(inner, namespace) for inner in value]
    if isinstance(value, str):
        return _ORDER.sub(r"\1", _POD.sub("POD", value.replace(namespace, "NAMESPACE")))
    return value

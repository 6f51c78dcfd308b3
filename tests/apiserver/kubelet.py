"""Plays the kubelets and what runs in their pods: staging, loading, readiness, failure; one small step at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.cluster import Cluster, Object
from cosyvoice_operator.errors import ConflictError
from tests.apiserver.deployment_controller import is_ready

STAGED = {"schema": 1, "reason": "Staged", "digest": f"sha256:{'5' * 64}", "bytes": 57000000, "elapsedSeconds": 0.4}


class Kubelet:
    """Every pod of `namespace`. `failures`: for a version, the termination message of its worker; others get ready."""

    def __init__(self, admin: Cluster, namespace: str, failures: Mapping[str, Mapping[str, Any]]) -> None:
        self._admin = admin
        self._namespace = namespace
        self._failures = failures
        self._loading: dict[str, Object] = {}

    def worker_status(self, pod: str) -> bytes | None:
        """What the worker of `pod` answers on /status, while it runs."""
        raw = self._loading.get(pod)
        if raw is None:
            return None
        labels, ready = raw["metadata"]["labels"], is_ready(raw)
        said = {
            "schema": names.STATUS_SCHEMA,
            "model": labels[names.LABEL_MODEL],
            "version": labels[names.LABEL_VERSION],
            "revision": labels[names.LABEL_REVISION],
            "digest": STAGED["digest"],
            "phase": "Ready" if ready else "Map",
            "ready": ready,
            "load": {"import": 2.0, "map": 0.2, "build": 0.3, "warmUp": 4.0, "total": 6.5} if ready else {},
        }
        return json.dumps(said).encode()

    async def step(self) -> bool:
        """Bring the first pod that has somewhere to go one step further. Whether there was one."""
        pods = await self._admin.list("Pod", self._namespace)
        self._loading = {raw["metadata"]["name"]: raw for raw in pods if _runs(raw)}
        for raw in pods:
            status = self._next(raw)
            if status is None:
                continue
            with suppress(ConflictError):  # someone annotated it, or it goes: look again
                await self._admin.replace({**raw, "status": {**raw["status"], **status}}, subresource="status")
            return True
        return False

    def _next(self, raw: Object) -> Mapping[str, Any] | None:
        """The pod's next status: staged and loading, then ready or failed for good."""
        labels = raw["metadata"]["labels"]
        if "containerStatuses" not in raw["status"]:
            return _started(raw)
        if is_ready(raw) or not _runs(raw):
            return None
        failure = self._failures.get(labels[names.LABEL_VERSION])
        return _ready(raw) if failure is None else _failed(raw, failure)


def _runs(raw: Object) -> bool:
    return any("running" in status["state"] for status in raw["status"].get("containerStatuses", ()))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(type_: str, status: str) -> dict[str, str]:
    return {"type": type_, "status": status, "lastTransitionTime": _now()}


def _container(name: str, state: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    image = {"image": "worker:1", "imageID": "1"}
    return {"name": name, **image, "ready": False, "restartCount": 0, "state": state, **more}


def _ended(message: Mapping[str, Any]) -> dict[str, Any]:
    code = names.WORKER_EXIT_CODES[message["reason"]]
    said = {"exitCode": code, "reason": "Error" if code else "Completed", "message": json.dumps(message)}
    return {"terminated": {**said, "startedAt": _now(), "finishedAt": _now()}}


def _started(raw: Object) -> dict[str, Any]:
    inits = [
        _container(container["name"], {"running": {}}, ready=True, started=True)
        if container.get("restartPolicy") == "Always"
        else _container(container["name"], _ended(STAGED), ready=True)
        for container in raw["spec"]["initContainers"]
    ]
    return {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [_condition("PodScheduled", "True"), _condition("Initialized", "True")],
        "initContainerStatuses": inits,
        "containerStatuses": [_container(names.WORKER_CONTAINER, {"running": {"startedAt": _now()}}, started=True)],
    }


def _ready(raw: Object) -> dict[str, Any]:
    worker = {**raw["status"]["containerStatuses"][0], "ready": True}
    return {
        "conditions": [*raw["status"]["conditions"], _condition("Ready", "True")],
        "containerStatuses": [worker],
    }


def _failed(raw: Object, message: Mapping[str, Any]) -> dict[str, Any]:
    """In the back-off after its first end."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
    worker = _container(names.WORKER_CONTAINER, waiting, lastState=_ended(message), restartCount=1, started=False)
    return {"conditions": [*raw["status"]["conditions"], _condition("Ready", "False")], "containerStatuses": [worker]}

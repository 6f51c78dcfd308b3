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
from tests.apiserver.played_worker import Message, PlayedWorker

DOCUMENTS = frozenset({names.KEY_CONFIG, names.KEY_CURRENT, names.KEY_CANDIDATE})


class Kubelet:
    """Every pod of `namespace`. `failures`: for a version, the termination message of its worker; others get ready."""

    def __init__(self, admin: Cluster, namespace: str, failures: Mapping[str, Message]) -> None:
        self._admin = admin
        self._namespace = namespace
        self._failures = failures
        self._pods: dict[str, Object] = {}
        self._workers: dict[str, PlayedWorker] = {}
        self.memory_high: Message = {"state": "Unknown", "reason": "this node has cgroup v1"}

    def worker_status(self, pod: str) -> bytes | None:
        """What the worker of `pod` answers on /status, while it runs."""
        raw = self._pods.get(pod)
        if raw is None or not _runs(raw):
            return None
        return self._workers[pod].status(ready=is_ready(raw), memory_high=self.memory_high)

    async def step(self) -> bool:
        """Bring the first pod that has somewhere to go one step further. Whether there was one."""
        self._pods = {raw["metadata"]["name"]: raw for raw in await self._admin.list("Pod", self._namespace)}
        for name, raw in self._pods.items():
            status = await self._next(name, raw)
            if status is not None:
                with suppress(ConflictError):  # someone annotated it, or it goes: look again
                    await self._admin.replace({**raw, "status": {**raw["status"], **status}}, subresource="status")
                return True
            if await self._follow(name, raw):
                return True
        return False

    async def _next(self, name: str, raw: Object) -> Mapping[str, Any] | None:
        """The pod's next status: staged and loading, then ready or failed for good."""
        if "containerStatuses" not in raw["status"]:
            worker = self._workers[name] = PlayedWorker(await self._documents(raw), self._failures)
            return _started(raw, worker.staged)
        if is_ready(raw) or not _runs(raw):
            return None
        failure = self._workers[name].failure
        return _ready(raw) if failure is None else _failed(raw, failure)

    async def _follow(self, name: str, raw: Object) -> bool:
        """Let the worker see its order, and what its mounts show now."""
        order = raw["metadata"].get("annotations", {}).get(names.ANNOTATION_SWAP)
        if not order or not is_ready(raw):
            return False
        return self._workers[name].follow(order, await self._documents(raw))

    async def _documents(self, raw: Object) -> dict[str, Object]:
        """What is mounted at /etc/cosyvoice, by key."""
        labels = raw["metadata"]["labels"]
        model, revision = labels[names.LABEL_MODEL], labels[names.LABEL_REVISION]
        documents: dict[str, Object] = {}
        for name in (names.revision_name(model, revision), names.live_name(model, revision)):
            mounted = await self._admin.get("ConfigMap", self._namespace, name) or {}
            documents |= {key: json.loads(text) for key, text in mounted.get("data", {}).items() if key in DOCUMENTS}
        return documents


def _runs(raw: Object) -> bool:
    return any("running" in status["state"] for status in raw["status"].get("containerStatuses", ()))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(type_: str, status: str) -> dict[str, str]:
    return {"type": type_, "status": status, "lastTransitionTime": _now()}


def _container(name: str, state: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    image = {"image": "worker:1", "imageID": "1"}
    return {"name": name, **image, "ready": False, "restartCount": 0, "state": state, **more}


def _ended(message: Message) -> dict[str, Any]:
    code = names.WORKER_EXIT_CODES[message["reason"]]
    said = {"exitCode": code, "reason": "Error" if code else "Completed", "message": json.dumps(message)}
    return {"terminated": {**said, "startedAt": _now(), "finishedAt": _now()}}


def _started(raw: Object, staged: Message) -> dict[str, Any]:
    inits = [
        _container(container["name"], {"running": {}}, ready=True, started=True)
        if container.get("restartPolicy") == "Always"
        else _container(container["name"], _ended(staged), ready=True)
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


def _failed(raw: Object, message: Message) -> dict[str, Any]:
    """In the back-off after its first end."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
    worker = _container(names.WORKER_CONTAINER, waiting, lastState=_ended(message), restartCount=1, started=False)
    return {"conditions": [*raw["status"]["conditions"], _condition("Ready", "False")], "containerStatuses": [worker]}

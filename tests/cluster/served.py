"""A model that always serves a good version, for tests that bring it bad ones, one after the other."""

from __future__ import annotations

from collections import defaultdict
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dev.audit import AuditLog
from dev.playground import RESOURCES, Playground
from dev.waiting import wait_for
from tests.cluster.traffic import Sounds, Traffic, calling, check_whole

OPERATOR_USER = "system:serviceaccount:cosyvoice-system:cosyvoice-operator"
# What a rollout would have to write. Status and events may still follow a pod that ends.
ROLLOUT = frozenset({"deployments", "configmaps", "pods"})
# The machine may have two: a worker that speaks leaves the other to one that loads.
ONE_CORE = {**RESOURCES, "limits": {**RESOURCES["limits"], "cpu": "1"}}

Pods = dict[str, list[int]]


@dataclass
class Served:
    """Good versions `good-1`, `good-2` … take turns with the weights of `paths`, which all sound differently."""

    playground: Playground
    name: str
    strategy: str
    paths: tuple[str, ...]
    replicas: int = 1
    sounds: dict[int, Sounds] = field(default_factory=lambda: defaultdict(dict))
    count: int = 0

    @property
    def version(self) -> str:
        """The good version that was applied last."""
        return f"good-{self.count}"

    def ensure(self) -> None:
        """Bring the model up, and anew where an earlier test left it with anything but its good version in service."""
        if self.count and self._serves_well():
            return
        self.playground.run("delete", "cosyvoicemodel", self.name, "--ignore-not-found", "--wait=true")
        wait_for("no pods", lambda: self.playground.pods(self.name) == [])
        self.apply_good()
        self.playground.wait_ready(self.name)

    def apply_good(self) -> str:
        """Apply the next good version."""
        self.count += 1
        self.apply(self.version, path=self.paths[self.count % len(self.paths)])
        return self.version

    def apply(self, version: str, *, path: str, **spec: Any) -> None:
        """Apply a version, with the strategy and the replicas of this model."""
        spec["rollout"] = {"strategy": self.strategy, **spec.get("rollout", {})}
        worker = {"replicas": self.replicas, "resources": ONE_CORE}
        self.playground.apply_model(self.name, path=path, version=version, worker=worker, **spec)

    def calls(self, folder: Path) -> AbstractContextManager[Traffic]:
        """Two clients at work (`calling`)."""
        return calling(self.playground, self.name, folder)

    def check(self, traffic: Traffic, *versions: str) -> None:
        """Every reply came, and whole from one of the good `versions`."""
        numbers = {version: int(version.removeprefix("good-")) for version in versions}
        known = {version: self.sounds[number % len(self.paths)] for version, number in numbers.items()}
        check_whole(traffic.replies(), known)

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.playground.model(self.name).get("status", {})
        return status

    def wait_reason(self, reason: str, timeout: float = 240) -> dict[str, Any]:
        """Wait until the status has this reason for the spec as it is now."""

        def probe() -> dict[str, Any] | None:
            model = self.playground.model(self.name)
            status: dict[str, Any] = model.get("status", {})
            current = status.get("observedGeneration") == model["metadata"]["generation"]
            return status if current and status["reason"] == reason else None

        try:
            status = wait_for(f"{reason} of {self.name}", probe, timeout=timeout)
        except Exception as error:
            error.add_note(self.playground.describe(self.name))
            raise
        if status is None:
            raise LookupError(reason)
        return status

    def pods(self) -> Pods:
        """The restart counts of each pod's containers, by the pod's uid."""
        return {
            pod["metadata"]["uid"]: [
                container["restartCount"]
                for kind in ("initContainerStatuses", "containerStatuses")
                for container in pod["status"].get(kind, [])
            ]
            for pod in self.playground.pods(self.name)
        }

    def writes(self, audit_log: AuditLog) -> list[str]:
        """What the operator wrote for a rollout since the log's mark."""
        return [
            str(request)
            for request in audit_log.since_mark()
            if (request.user, request.namespace, request.mutating) == (OPERATOR_USER, self.playground.namespace, True)
            and request.resource in ROLLOUT
            and request.name.startswith(self.name)
        ]

    def _serves_well(self) -> bool:
        status = self.status()
        return status.get("reason") == "Ready" and status.get("activeVersion") == self.version

"""A namespace with a claim of weights in it, and what a test does with models there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dev.demo.source import CLAIM, shared_volume
from dev.kubectl import Kubectl
from dev.waiting import wait_for

RESTRICTED = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/enforce-version": "latest",
}
READY_TIMEOUT = 180.0
# Small on purpose: the test models need little, and the two nodes share one machine.
RESOURCES = {
    "requests": {"cpu": "50m", "memory": "700Mi"},
    "limits": {"memory": "2Gi"},
}


@dataclass(frozen=True)
class Playground:
    """`kubectl` in one namespace; `folder` is what the claim `voices` shows to pods."""

    kubectl: Kubectl
    namespace: str
    folder: Path

    def create(self) -> None:
        """Make the namespace, under Pod Security `restricted`, and the claim."""
        self.kubectl.apply(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": self.namespace, "labels": RESTRICTED},
            }
        )
        wait_for("the default service account", lambda: self.get("serviceaccount", "default"))
        self.kubectl.apply(*shared_volume(self.namespace, self.folder))

    def remove(self) -> None:
        """Delete the namespace and its volume; both go in their own time, while the next test begins."""
        self.kubectl.run("delete", "namespace", self.namespace, "--wait=false")
        volume = f"{self.namespace}-{CLAIM}"
        self.kubectl.run("delete", "persistentvolume", volume, "--ignore-not-found", "--wait=false")

    def run(self, *arguments: str, stdin: str | None = None, timeout: float = 120) -> str:
        """`kubectl -n NAMESPACE ARGUMENTS`."""
        return self.kubectl.run("-n", self.namespace, *arguments, stdin=stdin, timeout=timeout)

    def get(self, *arguments: str) -> Any:
        """A parsed object or list of the namespace, None where it does not exist."""
        return self.kubectl.get("-n", self.namespace, *arguments)

    def model_manifest(self, name: str, *, path: str, version: str = "v1", **spec: Any) -> dict[str, Any]:
        """A CosyVoiceModel for the CPU whose weights lie at `path` of the claim; `spec` adds or replaces fields."""
        worker = {"replicas": 1, "resources": RESOURCES, **spec.pop("worker", {})}
        return {
            "apiVersion": "cosyvoice.dev/v1alpha1",
            "kind": "CosyVoiceModel",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "version": version,
                "source": {"uri": f"pvc://{CLAIM}/{path}"},
                "staging": {"sizeLimit": "512Mi"},
                "worker": worker,
                **spec,
            },
        }

    def apply_model(self, name: str, *, path: str, version: str = "v1", **spec: Any) -> str:
        """Apply the model; what kubectl said (created, configured, unchanged)."""
        manifest = self.model_manifest(name, path=path, version=version, **spec)
        return self.run("apply", "-f", "-", stdin=json.dumps(manifest))

    def model(self, name: str) -> dict[str, Any]:
        """The model as the API server has it."""
        found: dict[str, Any] | None = self.get("cosyvoicemodel", name)
        if found is None:
            raise LookupError(f"no CosyVoiceModel {self.namespace}/{name}")
        return found

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        """One condition of the model; an empty dict until it is there."""
        conditions = self.model(name).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})

    def wait_condition(
        self, name: str, kind: str, *, status: str = "True", reason: str | None = None, timeout: float = READY_TIMEOUT
    ) -> dict[str, Any]:
        """Wait for a condition of the model's current generation, and return it."""

        def probe() -> dict[str, Any] | None:
            model = self.model(name)
            if model.get("status", {}).get("observedGeneration") != model["metadata"]["generation"]:
                return None
            found = self.condition(name, kind)
            matches = found.get("status") == status and reason in (None, found.get("reason"))
            return found if matches else None

        try:
            found = wait_for(f"{kind}={status} ({reason or 'any reason'}) of {name}", probe, timeout=timeout)
        except Exception as error:
            error.add_note(self.describe(name))
            raise
        if found is None:
            raise LookupError(kind)
        return found

    def wait_ready(self, name: str, timeout: float = READY_TIMEOUT) -> dict[str, Any]:
        """Wait until the spec's version serves at full count; the model."""
        self.wait_condition(name, "Ready", timeout=timeout)
        return self.model(name)

    def pods(self, name: str) -> list[dict[str, Any]]:
        """The model's pods that are not being deleted."""
        found = self.get("pods", "-l", f"cosyvoice.dev/model={name}")
        return [pod for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]]

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events on the model itself."""
        found = self.get("events", "--field-selector", f"involvedObject.kind=CosyVoiceModel,involvedObject.name={name}")
        events: list[dict[str, Any]] = found["items"]
        return events

    def describe(self, name: str) -> str:
        """What a person would look at when the model is not as expected."""
        parts = [
            self.run("get", "cosyvoicemodel,deployment,replicaset,pod,service,pdb,configmap,pvc", "-o", "wide"),
            json.dumps(self.model(name).get("status", {}), indent=1),
            self.run("get", "events", "--sort-by=.lastTimestamp"),
        ]
        parts += [
            self.run("logs", pod["metadata"]["name"], "--all-containers", "--tail=20", "--ignore-errors")
            for pod in self.pods(name)
        ]
        return "\n".join(parts)

"""A namespace on a real API server, and the operator's passes driven by hand in it.

There are no controllers, so a test plays the Deployment controller: it says what the Deployment's status is.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.cluster import Cluster
from cosyvoice_operator.gather import Gatherer
from cosyvoice_operator.publish import Publisher
from cosyvoice_operator.reconcile import Reconciler
from cosyvoice_operator.refusals import Refusals
from cosyvoice_operator.revision import Policy
from cosyvoice_operator.workers import Direct, Workers
from tests.apiserver.control_plane import ControlPlane

CHILDREN = ("ConfigMap", "Service", "PodDisruptionBudget", "Deployment")
MAX_PASSES = 10


def claim(namespace: str) -> dict[str, Any]:
    """The claim that the models' weights are to lie in; nobody binds it, and nobody has to."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "voices", "namespace": namespace},
        "spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }


class World:
    """`now` is the operator's time; a test moves it. `patience` is how long a refused object is left alone."""

    def __init__(self, plane: ControlPlane, admin: Cluster, api: Cluster, namespace: str) -> None:
        self.plane = plane
        self.admin = admin
        self.namespace = namespace
        self.now = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
        self.patience = 300.0
        self.api = api
        self.restart()

    def restart(self, policy: Policy | None = None, api: Cluster | None = None) -> None:
        """A new operator: nothing is remembered."""
        door = api or self.api
        self.reconciler = Reconciler(
            door,
            Gatherer(door, Workers(Direct())),
            Publisher(door, lambda: self.now, "test"),
            Refusals(door, self._seconds, self.patience),
            policy or Policy(worker_image="worker:1", device="cpu"),
            clock=lambda: self.now,
        )

    def _seconds(self) -> float:
        return self.now.timestamp()

    async def apply(self, name: str = "narrator", **spec: Any) -> None:
        """The user applies a model."""
        await self.admin.apply(
            {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"version": "v1", "source": {"uri": "pvc://voices/model"}, **spec},
            }
        )

    async def one_pass(self, name: str = "narrator") -> float | None:
        self.now += timedelta(seconds=1)
        return await self.reconciler.reconcile((self.namespace, name))

    async def settle(self, name: str = "narrator") -> None:
        """Passes until one writes nothing."""
        for _ in range(MAX_PASSES):
            before = len(self.writes())
            await self.one_pass(name)
            if len(self.writes()) == before:
                return
        raise AssertionError(f"still writing after {MAX_PASSES} passes: {self.writes()}")

    def writes(self) -> list[str]:
        """What the operator wrote in this namespace so far."""
        return self.plane.writes(self.namespace)

    async def model(self, name: str = "narrator") -> dict[str, Any]:
        found = await self.admin.get(names.KIND, self.namespace, name)
        assert found is not None
        return found

    async def status(self, name: str = "narrator") -> dict[str, Any]:
        status: dict[str, Any] = (await self.model(name)).get("status", {})
        return status

    async def child(self, kind: str, name: str = "narrator") -> dict[str, Any]:
        found = await self.admin.get(kind, self.namespace, name)
        assert found is not None, f"there is no {kind} {name}"
        return found

    async def children(self) -> list[str]:
        """`Kind/name` of everything that carries our label."""
        return [
            f"{kind}/{raw['metadata']['name']}"
            for kind in CHILDREN
            for raw in await self.admin.list(kind, self.namespace, labels=names.LABEL_MODEL)
        ]

    async def events(self) -> list[str]:
        """`Type Reason: message` of the events on models, oldest first."""
        found = await self.admin.list("Event", self.namespace, fields=f"involvedObject.kind={names.KIND}")
        found.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [f"{event['type']} {event['reason']}: {event['message']}" for event in found]

    async def report_rolled_out(self, name: str = "narrator") -> None:
        """The Deployment controller says: every replica is updated, ready and available."""
        deployment = await self.child("Deployment", name)
        count = deployment["spec"]["replicas"]
        deployment["status"] = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": count,
            "updatedReplicas": count,
            "readyReplicas": count,
            "availableReplicas": count,
        }
        await self.admin.replace(deployment, subresource="status")

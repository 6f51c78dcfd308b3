"""The API server as a place for leases does what the fake of the unit tests does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cosyvoice_operator.cluster import Cluster
from cosyvoice_operator.errors import ConflictError
from cosyvoice_operator.lease import NAME, Lease, LeaseStore
from tests.unit.operator.leases import FakeLeaseStore

NAMESPACE = "cosyvoice-system"


@pytest.fixture(params=["fake", "real"])
async def store(request: pytest.FixtureRequest, world: Any) -> LeaseStore:
    """The fake, and the API server under the operator's own RBAC with no lease in it."""
    if request.param == "fake":
        return FakeLeaseStore()
    await world.admin.delete("Lease", NAMESPACE, NAME)
    api: Cluster = world.api
    return api


def manifest(holder: str) -> dict[str, Any]:
    metadata = {"name": NAME, "namespace": NAMESPACE}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


async def test_what_is_not_there_is_none(store: LeaseStore) -> None:
    assert await store.get("Lease", NAMESPACE, NAME) is None


async def test_what_was_created_is_found(store: LeaseStore) -> None:
    await store.create(manifest("a"))

    found = await store.get("Lease", NAMESPACE, NAME)

    assert found is not None
    assert found["spec"]["holderIdentity"] == "a"


async def test_only_one_can_create_it(store: LeaseStore) -> None:
    await store.create(manifest("a"))

    with pytest.raises(ConflictError):
        await store.create(manifest("b"))


async def test_only_the_newest_version_can_be_replaced(store: LeaseStore) -> None:
    await store.create(manifest("a"))
    first = await store.get("Lease", NAMESPACE, NAME)
    assert first is not None
    await store.replace({**first, "spec": {"holderIdentity": "b", "leaseDurationSeconds": 15}})

    with pytest.raises(ConflictError):
        await store.replace({**first, "spec": {"holderIdentity": "c", "leaseDurationSeconds": 15}})


async def test_of_many_candidates_exactly_one_gets_it(store: LeaseStore) -> None:
    candidates = [Lease(store, NAMESPACE, f"candidate-{n}", lambda: 0.0, retry_seconds=0.01) for n in range(5)]
    tasks = [asyncio.create_task(candidate.acquire()) for candidate in candidates]

    done, waiting = await asyncio.wait(tasks, timeout=1)
    for task in waiting:
        task.cancel()

    assert len(done) == 1

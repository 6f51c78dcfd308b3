"""A place for Leases in memory, held to the API server's behaviour by tests/apiserver/test_lease_store.py."""

from __future__ import annotations

import copy
from typing import Any

from cosyvoice_operator.errors import ConflictError, UnavailableError


class FakeLeaseStore:
    """Knows one Lease, `lease`. `broken`: nothing is answered."""

    def __init__(self) -> None:
        self.broken = False
        self.lease: dict[str, Any] | None = None
        self._version = 0

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        self._answer()
        lease = copy.deepcopy(self.lease)
        if lease is None or (lease["metadata"]["namespace"], lease["metadata"]["name"]) != (namespace, name):
            return None
        return {**lease, "kind": kind}

    async def create(self, manifest: dict[str, Any]) -> dict[str, Any]:
        self._answer()
        if self.lease is not None:
            raise ConflictError("post", 409, "exists")
        return self._store(manifest)

    async def replace(self, manifest: dict[str, Any]) -> dict[str, Any]:
        self._answer()
        if self.lease is None or manifest["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ConflictError("put", 409, "not the newest version")
        return self._store(manifest)

    def _answer(self) -> None:
        if self.broken:
            raise UnavailableError("any", 0, "connection refused")

    def _store(self, manifest: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        self.lease = copy.deepcopy(manifest)
        self.lease["metadata"]["resourceVersion"] = str(self._version)
        return copy.deepcopy(self.lease)

"""One operator at a time, by a Lease (coordination.k8s.io): acquire, renew, and stop at the first doubt.

A leader that could not renew for RENEW_DEADLINE no longer knows whether it is one, and ends; the next one takes over
DURATION after the last renewal at the earliest. Clocks need not agree: a candidate measures by its own clock how long
the lease it sees has not changed. On a clean stop the lease is released, so that the successor need not wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from cosyvoice_operator.errors import ClusterError, ConflictError

NAME = "cosyvoice-operator"
DURATION_SECONDS = 15
RENEW_DEADLINE_SECONDS = 10.0
RETRY_SECONDS = 2.0

logger = logging.getLogger(__name__)


class LeaseStore(Protocol):
    """Where the Lease is kept. `cluster.Cluster` is one."""

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None: ...

    async def create(self, manifest: dict[str, Any]) -> dict[str, Any]: ...

    async def replace(self, manifest: dict[str, Any]) -> dict[str, Any]: ...


class Lease:
    """The lease as one candidate, `identity`, sees it. `monotonic` is its clock."""

    def __init__(
        self,
        store: LeaseStore,
        namespace: str,
        identity: str,
        monotonic: Callable[[], float],
        *,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._identity = identity
        self._monotonic = monotonic
        self._retry_seconds = retry_seconds
        self._seen: tuple[object, object] | None = None
        self._seen_at = 0.0
        self._renewed = 0.0

    async def acquire(self) -> None:
        """Return once the lease is ours."""
        while True:
            if await self._try():
                break
            await asyncio.sleep(self._retry_seconds)
        logger.info("lease acquired", extra={"identity": self._identity})

    async def hold(self) -> None:
        """Renew; return when the lease is lost, or could not be renewed for RENEW_DEADLINE_SECONDS."""
        while (left := self._left()) > 0:
            await asyncio.sleep(min(self._retry_seconds, left))
            try:
                async with asyncio.timeout(self._left()):
                    if not await self._try_once():
                        return
            except (ClusterError, TimeoutError) as error:
                words = str(error) or "no answer in time"
                logger.warning("lease not renewed: %s", words, extra={"identity": self._identity})

    async def release(self) -> None:
        """Give the lease up, if it is still ours."""
        lease = await self._store.get("Lease", self._namespace, NAME)
        if lease is not None and lease["spec"].get("holderIdentity") == self._identity:
            await self._store.replace(self._ours(lease) | {"spec": {**lease["spec"], "holderIdentity": ""}})

    def _left(self) -> float:
        """The seconds until we no longer know whether the lease is ours."""
        return self._renewed + RENEW_DEADLINE_SECONDS - self._monotonic()

    async def _try(self) -> bool:
        try:
            return await self._try_once()
        except ClusterError as error:
            logger.warning("lease not acquired: %s", error, extra={"identity": self._identity})
            return False

    async def _try_once(self) -> bool:
        """Take or renew the lease; whether it is ours now. Raises ClusterError where nobody can tell."""
        asked = self._monotonic()  # others count from no earlier than this, however late the answer comes
        lease = await self._store.get("Lease", self._namespace, NAME)
        try:
            if lease is None:
                await self._store.create(self._ours(None))
            elif self._may_take(lease):
                await self._store.replace(self._ours(lease))
            else:
                return False
        except ConflictError:  # another candidate was faster
            return False
        self._renewed = asked
        return True

    def _may_take(self, lease: dict[str, Any]) -> bool:
        spec = lease["spec"]
        holder = spec.get("holderIdentity")
        now = self._monotonic()
        if (holder, spec.get("renewTime")) != self._seen:
            self._seen, self._seen_at = (holder, spec.get("renewTime")), now
        expired = now - self._seen_at >= spec.get("leaseDurationSeconds", DURATION_SECONDS)
        return holder in (None, "", self._identity) or expired

    def _ours(self, lease: dict[str, Any] | None) -> dict[str, Any]:
        """The Lease to write, over the one that was read."""
        before = (lease or {}).get("spec", {})
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        renewal = before.get("holderIdentity") == self._identity
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": DURATION_SECONDS,
            "acquireTime": before.get("acquireTime", now) if renewal else now,
            "renewTime": now,
            "leaseTransitions": before.get("leaseTransitions", 0) + (0 if renewal else 1),
        }
        metadata = lease["metadata"] if lease else {"name": NAME, "namespace": self._namespace}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}

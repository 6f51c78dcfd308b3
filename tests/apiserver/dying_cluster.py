"""A door to the cluster that closes for good after so many writes: the operator dies there."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from cosyvoice_operator.cluster import Cluster, Object
from cosyvoice_operator.errors import UnavailableError

Answer = TypeVar("Answer")


class DyingCluster(Cluster):
    """Reads go to `living`, and so do the first `writes` writes; the next one never leaves the process."""

    def __init__(self, living: Cluster, writes: int) -> None:
        self._living = living
        self._left = writes

    async def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return await self._living.get(kind, namespace, name)

    async def list(self, kind: str, namespace: str | None, **selectors: Any) -> list[Object]:
        return await self._living.list(kind, namespace, **selectors)

    async def apply(self, manifest: Object, *, dry_run: bool = False) -> None:
        await self._write(self._living.apply(manifest, dry_run=dry_run))

    async def annotate(self, kind: str, namespace: str, name: str, **metadata: Any) -> None:
        await self._write(self._living.annotate(kind, namespace, name, **metadata))

    async def create(self, manifest: Object) -> Object:
        return await self._write(self._living.create(manifest))

    async def replace(self, manifest: Object, *, subresource: str | None = None) -> Object:
        return await self._write(self._living.replace(manifest, subresource=subresource))

    async def delete(self, kind: str, namespace: str, name: str) -> None:
        await self._write(self._living.delete(kind, namespace, name))

    async def _write(self, request: Coroutine[Any, Any, Answer]) -> Answer:
        if self._left == 0:
            request.close()
            raise UnavailableError("write", 0, "the operator is dead")
        self._left -= 1
        return await request

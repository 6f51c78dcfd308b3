"""Asks workers how far they are: GET /status on the admin port, of the pod itself or through the API server.

Answers are untrusted: at most 64 KiB, a short time for all of it, parsed by `workerstatus`. No answer is an answer too:
a worker that does not say anything is simply shown without its phase.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol

from cosyvoice_operator import names, workerstatus
from cosyvoice_operator.cluster import Cluster
from cosyvoice_operator.errors import ClusterError
from cosyvoice_operator.observed import Pod, WorkerStatus

ANSWER_SECONDS = 2.0
AT_ONCE = 16
_HEADER_END = b"\r\n\r\n"


class Route(Protocol):
    """A way to a pod's admin port."""

    async def fetch(self, namespace: str, pod: Pod) -> bytes:
        """The body of GET /status. Raises OSError, TimeoutError, ValueError or ClusterError."""
        ...


class Direct:
    """Straight to the pod's address: the way inside the cluster."""

    def __init__(self, port: int = names.ADMIN_PORT) -> None:
        self._port = port

    async def fetch(self, namespace: str, pod: Pod) -> bytes:
        reader, writer = await asyncio.open_connection(pod.address, self._port)
        try:
            request = f"GET {names.PATH_STATUS} HTTP/1.0\r\nHost: {pod.name}.{namespace}\r\nConnection: close\r\n\r\n"
            writer.write(request.encode("ascii"))
            await writer.drain()
            return body_of(await _read(reader, 2 * workerstatus.MAX_BYTES))
        finally:
            writer.close()


class Proxied:
    """Through the API server's pod proxy: the way from outside the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def fetch(self, namespace: str, pod: Pod) -> bytes:
        return await self._cluster.proxy(
            namespace,
            pod.name,
            names.ADMIN_PORT,
            names.PATH_STATUS,
            limit=workerstatus.MAX_BYTES,
            timeout_seconds=ANSWER_SECONDS,
        )


class Workers:
    """Asks several workers at once; each gets `answer_seconds` for all of its answer."""

    def __init__(self, route: Route, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._route = route
        self._answer_seconds = answer_seconds
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def ask(self, namespace: str, pods: Iterable[Pod]) -> Mapping[str, WorkerStatus]:
        """What each pod answered, by the pod's name; those that gave no usable answer are left out."""
        asked = tuple(pods)
        answers = await asyncio.gather(*(self._ask(namespace, pod) for pod in asked))
        return {pod.name: answer for pod, answer in zip(asked, answers, strict=True) if answer is not None}

    async def _ask(self, namespace: str, pod: Pod) -> WorkerStatus | None:
        try:
            async with self._slots, asyncio.timeout(self._answer_seconds):
                return workerstatus.parse(await self._route.fetch(namespace, pod))
        except (OSError, TimeoutError, ValueError, ClusterError):
            return None


def body_of(response: bytes) -> bytes:
    """The body of an HTTP response with status 200 and no transfer coding. Raises ValueError for any other."""
    head, separator, body = response.partition(_HEADER_END)
    status_line, *headers = head.split(b"\r\n")
    if not separator or status_line.split(b" ")[1:2] != [b"200"]:
        raise ValueError(f"no HTTP response with status 200: {status_line[:80]!r}")
    if any(header.lower().startswith(b"transfer-encoding:") for header in headers):
        raise ValueError("a transfer coding in the answer to an HTTP/1.0 request")
    return body


async def _read(reader: asyncio.StreamReader, limit: int) -> bytes:
    """Everything up to the end, or the first `limit` bytes."""
    received = bytearray()
    while len(received) < limit and (piece := await reader.read(limit - len(received))):
        received += piece
    return bytes(received)

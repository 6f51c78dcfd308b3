"""A proxy between one operator and the API server that can kill the operator at any of its writes.

It speaks plain HTTP to the operator and TLS to the API server, one connection a request, so that a watch is a stream of
bytes like any other answer. What the kubelet would answer through the API server's pod proxy, the test answers.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Self

import yaml

from tests.apiserver.control_plane import ControlPlane

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_PIECE = 65536
_LARGEST_HEAD = 1 << 20
_PATIENCE = 2.0  # seconds for a client to take what is left
_LAST_TURNS = 3
_POD_PROXY = re.compile(r"/pods/([^/:]+):\d+/proxy/status$")


class Moment(Enum):
    """When the operator dies: the API server never hears of the write, or the operator never hears of its success."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Death:
    """At which write of this operator, counted from 1, and on which side of it."""

    write: int
    moment: Moment


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    target: str
    raw: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def writes(self) -> bool:
        return self.method not in _READS and "dryRun=" not in self.target


class MortalProxy:
    """Counts the writes of one operator in `namespace`; at its death it calls `kill` and passes nothing on any more.

    `worker_status(pod)` is the body of GET /status of a pod, None where its worker does not answer. `passes` counts how
    often the operator looked at a model since its last write, `writes` holds what was passed on, as `METHOD path`.
    """

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        *,
        kill: Callable[[], None],
        worker_status: Callable[[str], bytes | None],
    ) -> None:
        self.writes: list[str] = []
        self.passes = 0
        self.killed = False
        self._plane = plane
        self._inside = f"/namespaces/{namespace}/"
        self._death: Death | None = None
        self._kill = kill
        self._worker_status = worker_status
        self._coming = 0
        self._stopping = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_LARGEST_HEAD)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self._stopping.set()
        await asyncio.gather(*self._connections)
        # An aborted connection is closed in the loop's next turns.
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(0)

    def arm(self, death: Death) -> None:
        """Let the operator die at `death`, whose writes count from now on."""
        self._death, self._coming = death, 0

    def write_kubeconfig(self, path: Path) -> Path:
        """The operator's own kubeconfig, with this proxy for the API server."""
        config = yaml.safe_load(self._plane.operator_kubeconfig.read_text())
        port = self._server.sockets[0].getsockname()[1]
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{port}"}
        path.write_text(yaml.safe_dump(config))
        return path

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            # The operator hangs up on a watch, or dies in the middle of anything.
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._serve(await _read_request(reader), reader, writer)
        finally:
            await _hang_up(writer)
            self._connections.discard(task)

    async def _serve(self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.killed:
            return
        if pod := _POD_PROXY.search(request.path):
            writer.write(_answer(self._worker_status(pod[1])))
            await writer.drain()
            return
        if request.method == "GET" and re.search(rf"{self._inside}cosyvoicemodels/[^/]+$", request.path):
            self.passes += 1
        if request.writes and self._inside in request.path:
            await self._pass_on_write(request, writer)
        else:
            await self._pass_on(request, reader, writer)

    async def _pass_on_write(self, request: _Request, writer: asyncio.StreamWriter) -> None:
        self._coming += 1
        if self._death == Death(self._coming, Moment.BEFORE):
            self._end()
            return
        answer = await self._ask(request)
        self.passes = 0
        self.writes.append(f"{request.method} {request.path}")
        if self._death == Death(self._coming, Moment.AFTER):
            self._end()
            return
        writer.write(answer)
        await writer.drain()

    async def _ask(self, request: _Request) -> bytes:
        """The whole answer: when it is here, the API server has done what it was asked for."""
        upstream, sender = await self._connect(request)
        try:
            return await upstream.read()
        finally:
            sender.transport.abort()

    async def _pass_on(self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The answer as it comes, until either side has enough."""
        upstream, sender = await self._connect(request)
        streaming = asyncio.create_task(_copy(upstream, writer))
        ends = (streaming, asyncio.create_task(reader.read(1)), asyncio.create_task(self._stopping.wait()))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        sender.transport.abort()

    async def _connect(self, request: _Request) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        unverified = ssl.create_default_context()  # the certificate is one that the server made for itself
        unverified.check_hostname = False
        unverified.verify_mode = ssl.CERT_NONE
        upstream, sender = await asyncio.open_connection("127.0.0.1", self._plane.port, ssl=unverified)
        sender.write(request.raw)
        await sender.drain()
        return upstream, sender

    def _end(self) -> None:
        self.killed = True
        self._kill()


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    """Send what is left, and wait until the connection is closed: an open one at the end of a test is an error."""
    writer.close()
    try:
        await asyncio.wait_for(writer.wait_closed(), _PATIENCE)
    except (ConnectionError, TimeoutError):
        writer.transport.abort()


async def _read_request(reader: asyncio.StreamReader) -> _Request:
    """One request, made to be the last on its connection. The operator always sends the length of a body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *headers = head.removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    fields = {name.lower(): value.strip() for name, _, value in (header.partition(":") for header in headers)}
    body = await reader.readexactly(int(fields.pop("content-length", "0")))
    fields |= {"connection": "close", "content-length": str(len(body))}
    lines = [first, *(f"{name}: {value}" for name, value in fields.items())]
    return _Request(method, target, "\r\n".join((*lines, "", "")).encode("latin-1") + body)


async def _copy(upstream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await upstream.read(_PIECE):
        writer.write(piece)
        await writer.drain()


def _answer(body: bytes | None) -> bytes:
    line = "503 Service Unavailable" if body is None else "200 OK"
    head = f"HTTP/1.1 {line}\r\nContent-Type: application/json\r\nContent-Length: {len(body or b'')}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + (body or b"")

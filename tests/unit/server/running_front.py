"""A whole front on loopback over fake engines, and clients for it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cosyvoice_worker.outcome import Outcome
from cosyvoice_worker.server.api_keys import ApiKeys
from cosyvoice_worker.server.front import Front
from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.server.second_engine import Container
from cosyvoice_worker.server.speech_log import Tracer
from cosyvoice_worker.server.state import FrontState, Identity
from cosyvoice_worker.settings import Recycle
from cosyvoice_worker.voices.registry import ListedVoice
from tests.unit.server import fake_engine
from tests.unit.server.fake_engine import FakeLauncher, Script

HOST = "127.0.0.1"
IDENTITY = Identity(
    model="narrator",
    version="v1.2.0",
    revision="3f9a1c0b7d",
    digest="sha256:" + "ab" * 32,
    staged_bytes=57_000_000,
    staged_seconds=0.4,
)


class FakeVoices:
    """Two voices that can be used, and one that cannot."""

    def __init__(self) -> None:
        self.model: Path | None = None

    def follow(self, model: Path) -> None:
        self.model = model

    async def names(self) -> list[str]:
        return ["anna", "ben"]

    async def listed(self) -> list[ListedVoice]:
        return [
            ListedVoice("anna", Path("anna.safetensors"), 3.2, "I am Anna."),
            ListedVoice("ben", Path("ben.safetensors"), 0.0, ""),
            ListedVoice("carl", Path("carl.safetensors"), broken="carl.safetensors: too short"),
        ]


@dataclass(frozen=True)
class Reply:
    """A response as it came over the wire. `complete` is false when it ended before it should."""

    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool = True

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One raw connection: what goes over the wire is what the tests are about."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> None:
        lines = {"host": "test", **({"content-length": str(len(body))} if body else {})}
        lines |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        await self.writer.drain()

    async def speak(self, text: str = "Hello.", **fields: object) -> None:
        await self.send("POST", "/v1/audio/speech", json.dumps({"input": text, **fields}).encode())

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split()[1]), {name.lower(): value for name, value in headers.items()}

    async def chunk(self) -> bytes:
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def reply(self) -> Reply:
        status, headers = await self.head()
        if "content-length" in headers:
            return Reply(status, headers, await self.reader.readexactly(int(headers["content-length"])))
        body = b""
        try:
            while chunk := await self.chunk():
                body += chunk
        except (asyncio.IncompleteReadError, ConnectionError):
            return Reply(status, headers, body, complete=False)
        return Reply(status, headers, body)

    async def closed(self) -> bool:
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    def leave(self) -> None:
        self.writer.transport.abort()


class RunningFront:
    """The front's two ports, and the engines it started."""

    def __init__(self, front: Front, launcher: FakeLauncher, sockets: tuple[socket.socket, socket.socket]) -> None:
        self.front = front
        self.launcher = launcher
        self.api_port, self.admin_port = (sock.getsockname()[1] for sock in sockets)
        self.running: asyncio.Task[Outcome | None]

    async def connect(self, port: int | None = None) -> Client:
        return Client(*await asyncio.open_connection(HOST, port or self.api_port))

    async def ask(self, method: str, path: str, body: bytes = b"", *, admin: bool = False, **headers: str) -> Reply:
        client = await self.connect(self.admin_port if admin else self.api_port)
        await client.send(method, path, body, **headers)
        reply = await client.reply()
        client.leave()
        return reply

    async def speak(self, text: str = "Hello.", **fields: object) -> Reply:
        return await self.ask("POST", "/v1/audio/speech", json.dumps({"input": text, **fields}).encode())

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - what is waited for are plain values of the product's state
            await asyncio.sleep(0.002)

    def count(self, outcome: str) -> float:
        metrics = self.front.dispatcher.metrics
        return metrics.registry.get_sample_value("cosyvoice_requests_total", {"outcome": outcome}) or 0.0


@asynccontextmanager
async def running_front(
    *scripts: Script,
    limits: Limits | None = None,
    lazy: bool = False,
    ready: bool = True,
    root: Path = Path("/nowhere"),
    recycle: Recycle | None = None,
    measure: Callable[[], Container] = lambda: Container(limit=None, used=0),
    voices: FakeVoices | None = None,
    tracer: Tracer | None = None,
    api_keys: ApiKeys | None = None,
) -> AsyncIterator[RunningFront]:
    """A front whose first engine runs the first script; ended without draining. `root` has its order and its stage."""
    launcher = FakeLauncher(*scripts)
    version = replace(fake_engine.version(recycle=recycle), identity=IDENTITY)
    sockets = (socket.create_server((HOST, 0)), socket.create_server((HOST, 0)))
    front = Front(
        state=FrontState(identity=IDENTITY, lazy=lazy),
        version=version,
        voices=voices or FakeVoices(),
        limits=limits or Limits(kill_seconds=0.2, order_seconds=0.01),
        launch=launcher,
        sockets=sockets,
        root=root,
        order_file=root / "swap",
        on_switch=lambda _: None,
        measure=measure,
        tracer=tracer,
        api_keys=api_keys,
    )
    harness = RunningFront(front, launcher, sockets)
    harness.running = asyncio.create_task(front.run(None if lazy else launcher(version)))
    await harness.until(lambda: not (ready and not lazy) or front.state.engine_ready or harness.running.done())
    yield harness
    front.stop()
    front.stop()
    await harness.running

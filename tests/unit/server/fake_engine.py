"""An engine in this process that does what a script says, over the real channel. Held to the real one by
tests/engine/test_serve_engine_contract.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path

from cosyvoice_worker.channel import (
    LENGTH,
    Audio,
    Beat,
    Cancel,
    Done,
    EngineMessage,
    Failed,
    FrontMessage,
    Hello,
    PhaseChanged,
    Ready,
    Shutdown,
    Synthesize,
    decode_front,
    encode,
)
from cosyvoice_worker.server.state import Identity
from cosyvoice_worker.server.version import Version
from cosyvoice_worker.settings import Recycle

RATE = 24000
KILLED = -9
READY = Ready(
    sample_rate=RATE,
    device="cpu",
    dtype="float32",
    load={"import": 0.4, "map": 0.1, "build": 0.1, "warmUp": 0.2, "total": 0.8},
    voices=["anna"],
    slowest_step=0.01,
)

_pids = itertools.count(1001)


class FakeEngine:
    """One engine. Its script runs from the start; when it returns or is killed the channel closes."""

    def __init__(self, script: Script) -> None:
        self.pid = next(_pids)
        self.started_at = asyncio.get_running_loop().time()
        self.sock, self._theirs = socket.socketpair()
        self.received: list[FrontMessage] = []
        self.exit_code = 0
        self.private = 100 * 2**20
        self.bounds: list[int | None] = []
        self._waiting: deque[Synthesize] = deque()
        self._status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._task = asyncio.get_running_loop().create_task(self._run(script))
        self._task.add_done_callback(lambda _: self._theirs.close())  # it may have been cancelled before it began

    # ----- the port ---------------------------------------------------------------------------------------------------

    def private_bytes(self) -> int | None:
        return None if self._status.done() else self.private

    def bound(self, growth: int | None) -> None:
        self.bounds.append(growth)

    def kill(self) -> None:
        if not self._status.done():
            self._status.set_result(KILLED)
            self._task.cancel()

    async def wait(self) -> int:
        return await asyncio.shield(self._status)

    # ----- what scripts use -------------------------------------------------------------------------------------------

    async def send(self, *messages: EngineMessage) -> None:
        for message in messages:
            self._writer.write(encode(message))
        await self._writer.drain()

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def load(self) -> None:
        phases = [PhaseChanged(name=name) for name in ("Import", "Map", "Build", "WarmUp")]
        await self.send(Hello(pid=self.pid), *phases, READY)

    async def receive(self) -> FrontMessage:
        (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
        message = decode_front(await self._reader.readexactly(length))
        self.received.append(message)
        return message

    async def request(self) -> Synthesize:
        """The next request; a cancellation that comes too late is answered by nothing, as the real engine does."""
        while not self._waiting:
            match await self.receive():
                case Synthesize() as request:
                    return request
                case Cancel():
                    pass
                case Shutdown():
                    raise asyncio.CancelledError
        return self._waiting.popleft()

    async def cancelled(self, request: Synthesize) -> None:
        """Wait for the request's cancellation and confirm it; other requests wait meanwhile."""
        while (message := await self.receive()) != Cancel(id=request.id):
            if isinstance(message, Synthesize):
                self._waiting.append(message)
            elif isinstance(message, Shutdown):
                raise asyncio.CancelledError
        await self.send(done(request, cancelled=True))

    async def _run(self, script: Script) -> None:
        self._reader, self._writer = await asyncio.open_unix_connection(sock=self._theirs)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await script(self)
        finally:
            self._writer.close()
            with contextlib.suppress(ConnectionError):
                await self._writer.wait_closed()
            if not self._status.done():
                self._status.set_result(self.exit_code)


Script = Callable[[FakeEngine], Awaitable[None]]


class FakeLauncher:
    """Starts engines with the given scripts in turn, the last one again and again.

    `versions` and `memory_bytes` are what each was started for and with.
    """

    def __init__(self, *scripts: Script) -> None:
        self.engines: list[FakeEngine] = []
        self.versions: list[Version] = []
        self.memory_bytes: list[int | None] = []
        self._scripts = scripts
        self._refusal: OSError | None = None

    def refuse_with(self, error: OSError) -> None:
        """Start no engine from now on."""
        self._refusal = error

    def __call__(self, version: Version, memory_bytes: int | None = None) -> FakeEngine:
        if self._refusal is not None:
            raise self._refusal
        self.versions.append(version)
        self.memory_bytes.append(memory_bytes)
        script = self._scripts[min(len(self.engines), len(self._scripts) - 1)]
        self.engines.append(FakeEngine(script))
        return self.engines[-1]


def version(revision: str = "3f9a1c0b7d", recycle: Recycle | None = None, load_seconds: float = 60) -> Version:
    """A version for which a fake engine can be started: nothing is read of it."""
    place = Path("/nowhere") / revision
    return Version(
        identity=Identity(model="narrator", version=f"v-{revision}", revision=revision),
        document=place / "model.json",
        directory=place,
        load_seconds=load_seconds,
        recycle=recycle or Recycle(),
    )


def samples(text: str) -> bytes:
    """What the fake says for `text`: 10 ms for each character, told apart by its length."""
    return len(text).to_bytes(2, "little") * (len(text) * RATE // 100)


def done(request: Synthesize, *, cancelled: bool = False) -> Done:
    digest = hashlib.sha256(request.text.encode()).hexdigest()
    return Done(
        id=request.id,
        speech_tokens=len(request.text),
        speech_tokens_sha256=digest,
        seconds=0.01,
        cancelled=cancelled,
    )


async def speak(engine: FakeEngine, request: Synthesize, pieces: int = 2) -> None:
    """Answer a request in `pieces`."""
    audio = samples(request.text)
    size = -(-len(audio) // (2 * pieces)) * 2
    for seq in range(pieces):
        await engine.send(
            Beat(id=request.id, step=seq), Audio(id=request.id, seq=seq, s16=audio[seq * size : (seq + 1) * size])
        )
    await engine.send(done(request))


# ----- scripts --------------------------------------------------------------------------------------------------------


async def good(engine: FakeEngine) -> None:
    """Load, then answer every request."""
    await engine.load()
    while True:
        await speak(engine, await engine.request())


async def silent(engine: FakeEngine) -> None:
    """Load, then take a request and never answer nor step."""
    await engine.load()
    await engine.request()
    await asyncio.Event().wait()


async def waiting(engine: FakeEngine) -> None:
    """Load, then work on each request until it is cancelled."""
    await engine.load()
    while True:
        await engine.cancelled(await engine.request())


async def never_ready(engine: FakeEngine) -> None:
    """Stay in Map for ever."""
    await engine.send(Hello(pid=engine.pid), PhaseChanged(name="Import"), PhaseChanged(name="Map"))
    await asyncio.Event().wait()


async def refusing(engine: FakeEngine) -> None:
    """Fail to load with a reason."""
    await engine.send(Hello(pid=engine.pid), PhaseChanged(name="Map"))
    await engine.send(Failed(id=0, reason="MissingTensor", message="llm.pt lacks x", phase="Map", tensor="x"))
    engine.exit_code = 66


class Paused:
    """An engine that loads and waits with each answer until it may go on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def __call__(self, engine: FakeEngine) -> None:
        await engine.load()
        while True:
            request = await engine.request()
            await self.go_on.wait()
            await speak(engine, request)


def dying_after(requests: int, exit_code: int = 1) -> Script:
    """Load, answer some requests, and end in the middle of the next one, before its first audio."""

    async def script(engine: FakeEngine) -> None:
        await engine.load()
        for _ in range(requests):
            await speak(engine, await engine.request())
        await engine.request()
        engine.exit_code = exit_code

    return script


async def dying_in_mid_stream(engine: FakeEngine) -> None:
    """Load and end after the first piece of a request."""
    await engine.load()
    request = await engine.request()
    await engine.send(Audio(id=request.id, seq=0, s16=samples("ab")))
    engine.exit_code = 1

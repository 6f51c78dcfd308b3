"""One engine process from its start to its end: its messages, the breaker on its load, the watchdog after it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cosyvoice_worker.channel import Bound, EngineMessage, Failed, Hello, PhaseChanged, Ready, Shutdown
from cosyvoice_worker.outcome import Outcome
from cosyvoice_worker.server import postmortem
from cosyvoice_worker.server.dispatcher import Dispatcher
from cosyvoice_worker.server.engine_client import ChannelError, EngineClient
from cosyvoice_worker.server.engine_rules import Progress, is_stuck, load_is_over, stuck_after
from cosyvoice_worker.server.job import Speaker
from cosyvoice_worker.server.lane import Lane
from cosyvoice_worker.server.memory import Usage
from cosyvoice_worker.server.oom_kills import OomKills
from cosyvoice_worker.server.postmortem import Death
from cosyvoice_worker.server.state import READY, START
from cosyvoice_worker.server.version import Version

log = logging.getLogger(__name__)


class EngineProcess(Protocol):
    """A started engine. `started_at` is a time of the event loop's clock; `sock` the front's end of the channel."""

    @property
    def pid(self) -> int: ...
    @property
    def sock(self) -> socket.socket: ...
    @property
    def started_at(self) -> float: ...

    def private_bytes(self) -> int | None:
        """The memory it holds for itself; None when that cannot be told."""

    def bound(self, growth: int | None) -> None:
        """Let the kernel allow it `growth` more bytes, or (None) what an only engine may have, where it has a say."""

    def kill(self) -> None:
        """SIGKILL; without effect on a process that has ended."""

    async def wait(self) -> int:
        """Reap it: its exit code, or minus the number of the signal that killed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long an engine may take to end. `tick_seconds` is how often its progress is looked at."""

    kill_seconds: float = 3.0
    tick_seconds: float = 0.25


class EngineLife:
    """`start()` once; `ended` is its end. `changed` is told each phase; from Ready on, `ready` and `lane` are there."""

    ended: asyncio.Task[Death]

    def __init__(
        self,
        engine: EngineProcess,
        version: Version,
        dispatcher: Dispatcher,
        patience: Patience,
        *,
        oom_kills: OomKills,
        changed: Callable[[EngineLife], None],
    ) -> None:
        self.engine = engine
        self.version = version
        self.phase = START
        self.ready: Ready | None = None
        self.lane: Lane | None = None
        self.is_ready = asyncio.Event()
        self.usage = Usage()
        self._dispatcher = dispatcher
        self._patience = patience
        self._oom_kills = oom_kills
        self._changed = changed
        self._client: EngineClient | None = None
        self._failed: Failed | None = None
        self._killed: Outcome | None = None

    def start(self) -> None:
        """Be with this engine until it has ended."""
        self.ended = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> Death:
        loop = asyncio.get_running_loop()
        oom_kills_before = self._oom_kills.unclaimed()
        self._client = await EngineClient.connect(self.engine.sock)
        reading = loop.create_task(self._read(self._client))
        exiting = loop.create_task(self.engine.wait())
        guarding = loop.create_task(self._guard())
        try:
            await asyncio.wait({reading, exiting}, return_when=asyncio.FIRST_COMPLETED)
            # Whichever came first, the other one follows at once, unless something is very wrong with the engine.
            await asyncio.wait({reading, exiting}, timeout=self._patience.kill_seconds)
            self.engine.kill()
            status = await exiting
        finally:
            for task in (reading, exiting, guarding):
                task.cancel()
            await self._client.close()
        return Death(
            status=status,
            phase=self.phase,
            failed=self._failed,
            killed=self._killed,
            oom_killed=self._may_be_the_kernel_s(status) and self._oom_kills.claim(oom_kills_before),
            elapsed=loop.time() - self.engine.started_at,
        )

    def bound(self, growth: int | None) -> None:
        """Let the engine take `growth` more bytes of memory, or (None) what the limit leaves to an only engine."""
        self.engine.bound(growth)
        if self._client is not None and self.ready is not None:
            self._client.send(Bound(growth=growth))

    def give_up(self, why: Outcome) -> None:
        """Kill the engine, whose end then has this reason."""
        with contextlib.suppress(ProcessLookupError):
            self.engine.kill()
        self._killed = self._killed or why

    async def shut_down(self) -> None:
        """Ask the engine to end, and kill it when it takes too long. Returns when that time is over: see `ended`."""
        if self._client is None:
            self.engine.kill()
            return
        self._client.send(Shutdown())
        await asyncio.sleep(self._patience.kill_seconds)
        self.engine.kill()

    async def _read(self, client: EngineClient) -> None:
        try:
            async for message in client.messages():
                self._receive(message, client)
        except ChannelError as error:
            self.give_up(postmortem.broken_channel(str(error)))

    def _receive(self, message: EngineMessage, client: EngineClient) -> None:
        match message:
            case Hello():
                self._enter("Import")
            case PhaseChanged(name=name):
                self._enter(name)
            case Ready():
                self._become_ready(message, client)
            case Failed(id=0):
                self._failed = message
            case _ if self.lane is not None:
                self._dispatcher.receive(self.lane, message)
            case _:
                pass  # beats of the warm-up

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self._changed(self)

    def _become_ready(self, ready: Ready, client: EngineClient) -> None:
        self.ready = ready
        self.usage.at_ready = self.usage.between_requests = self.usage.see(self.engine.private_bytes())
        speaker = Speaker(sample_rate=ready.sample_rate, version=self.version.identity.version)
        self.lane = Lane(client.send, speaker, self._look_between_requests)
        for phase, seconds in ready.load.items():
            self._dispatcher.metrics.load_seconds.labels(phase=phase).observe(seconds)
        fields = {"engine": self.engine.pid, "load": ready.load, "revision": self.version.identity.revision}
        log.info("the model is loaded", extra=fields)
        self.is_ready.set()
        self._enter(READY)

    def _look_between_requests(self) -> None:
        self.usage.between_requests = self.usage.see(self.engine.private_bytes())

    async def _guard(self) -> None:
        loop = asyncio.get_running_loop()
        while self._killed is None:
            now = loop.time()
            self.usage.see(self.engine.private_bytes())
            if self.ready is None or self.lane is None:
                limit = self.version.load_seconds
                if load_is_over(self.engine.started_at, limit, now):
                    self.give_up(postmortem.load_timeout(self.phase, limit, now - self.engine.started_at))
            else:
                moved_at, slowest = self.lane.moved_at, self.ready.slowest_step
                if is_stuck(Progress(busy=self.lane.job is not None, moved_at=moved_at, slowest_step=slowest), now):
                    self.give_up(postmortem.stuck(now - moved_at, stuck_after(slowest)))
            await asyncio.sleep(self._patience.tick_seconds)

    def _may_be_the_kernel_s(self, status: int) -> bool:
        return status == -signal.SIGKILL and self._killed is None

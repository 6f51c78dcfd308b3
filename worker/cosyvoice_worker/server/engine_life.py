"""One engine process from its start to its end: its messages, the breaker on its load, the watchdog after it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cosyvoice_worker.channel import EngineMessage, Failed, Hello, PhaseChanged, Ready, Shutdown
from cosyvoice_worker.outcome import Outcome
from cosyvoice_worker.server import postmortem
from cosyvoice_worker.server.dispatcher import Dispatcher
from cosyvoice_worker.server.engine_client import ChannelError, EngineClient
from cosyvoice_worker.server.engine_rules import Progress, is_stuck, load_is_over, stuck_after
from cosyvoice_worker.server.postmortem import Death
from cosyvoice_worker.server.state import READY, START, FrontState

log = logging.getLogger(__name__)


class EngineProcess(Protocol):
    """A started engine. `started_at` is a time of the event loop's clock; `sock` the front's end of the channel."""

    @property
    def pid(self) -> int: ...
    @property
    def sock(self) -> socket.socket: ...
    @property
    def started_at(self) -> float: ...

    def kill(self) -> None:
        """SIGKILL; without effect on a process that has ended."""

    async def wait(self) -> int:
        """Reap it: its exit code, or minus the number of the signal that killed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long an engine may take. `tick_seconds` is how often that is looked at."""

    load_seconds: float
    kill_seconds: float = 3.0
    tick_seconds: float = 0.25


class EngineLife:
    """`run()` once. `oom_kills` reads the kernel's counter; None where there is none."""

    def __init__(
        self,
        engine: EngineProcess,
        state: FrontState,
        dispatcher: Dispatcher,
        patience: Patience,
        oom_kills: Callable[[], int | None],
    ) -> None:
        self.engine = engine
        self.served = False
        self._state = state
        self._dispatcher = dispatcher
        self._patience = patience
        self._oom_kills = oom_kills
        self._client: EngineClient | None = None
        self._phase = START
        self._slowest_step = 0.0
        self._failed: Failed | None = None
        self._killed: Outcome | None = None

    async def run(self) -> Death:
        """Serve with this engine until it has ended, and tell how."""
        loop = asyncio.get_running_loop()
        oom_kills_before = self._oom_kills()
        self._state.engine_pid = self.engine.pid
        self._enter(START)
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
            phase=self._phase,
            failed=self._failed,
            killed=self._killed,
            oom_killed=(self._oom_kills() or 0) > (oom_kills_before or 0),
            elapsed=loop.time() - self.engine.started_at,
        )

    async def shut_down(self) -> None:
        """Ask the engine to end; `run` returns when it has, or was killed because it took too long."""
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
            self._kill(postmortem.broken_channel(str(error)))

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
            case _:
                self._dispatcher.receive(message)

    def _enter(self, phase: str) -> None:
        self._phase = self._state.phase = phase

    def _become_ready(self, ready: Ready, client: EngineClient) -> None:
        self.served = True
        self._slowest_step = ready.slowest_step
        state = self._state
        state.device, state.dtype, state.sample_rate = ready.device, ready.dtype, ready.sample_rate
        state.load = dict(ready.load)
        state.failure = None
        self._enter(READY)
        state.engine_ready = True
        for phase, seconds in ready.load.items():
            self._dispatcher.metrics.load_seconds.labels(phase=phase).observe(seconds)
        log.info("the model is loaded", extra={"engine": self.engine.pid, "load": ready.load})
        self._dispatcher.attach(client.send)

    async def _guard(self) -> None:
        loop = asyncio.get_running_loop()
        while self._killed is None:
            now = loop.time()
            if not self.served:
                if load_is_over(self.engine.started_at, self._patience.load_seconds, now):
                    elapsed = now - self.engine.started_at
                    self._kill(postmortem.load_timeout(self._phase, self._patience.load_seconds, elapsed))
            else:
                moved_at = self._dispatcher.moved_at
                busy = self._dispatcher.in_flight > 0
                if is_stuck(Progress(busy=busy, moved_at=moved_at, slowest_step=self._slowest_step), now):
                    self._kill(postmortem.stuck(now - moved_at, stuck_after(self._slowest_step)))
            await asyncio.sleep(self._patience.tick_seconds)

    def _kill(self, why: Outcome) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.engine.kill()
        self._killed = why

"""The front put together, and its life: serve, drain, end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry

from cosyvoice_worker.cgroup.high import MemoryHigh
from cosyvoice_worker.metrics import Metrics
from cosyvoice_worker.outcome import Outcome
from cosyvoice_worker.server import problems
from cosyvoice_worker.server.access import Guard
from cosyvoice_worker.server.api_keys import ApiKeys
from cosyvoice_worker.server.app import build_app
from cosyvoice_worker.server.dispatcher import Dispatcher
from cosyvoice_worker.server.engine_life import EngineProcess, Patience
from cosyvoice_worker.server.http_server import make_server
from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.server.pages import Pages
from cosyvoice_worker.server.second_engine import Container, SecondEngine, measure
from cosyvoice_worker.server.speech import Speech
from cosyvoice_worker.server.speech_log import Tracer
from cosyvoice_worker.server.state import FrontState
from cosyvoice_worker.server.succession import Succession
from cosyvoice_worker.server.supervisor import Launch, Supervisor
from cosyvoice_worker.server.version import Version
from cosyvoice_worker.server.voices import Voices

DRAIN_TICK_SECONDS = 0.05
STOPPING_RETRY_SECONDS = 1

log = logging.getLogger(__name__)


class Front:
    """Made and run on one event loop. `launch` starts an engine process; `sockets` are the API's and the admin's.

    `version` is served first, and `on_switch` told of each that takes over. `order_file` is where orders to do so
    arrive, `root` where their weights are staged, `measure` looks at the container's memory,
    `memory_high` at what came of the wish for that, and `tracer` is told of each speech request.
    """

    def __init__(
        self,
        *,
        state: FrontState,
        version: Version,
        voices: Voices,
        limits: Limits,
        launch: Launch,
        sockets: tuple[socket.socket, socket.socket],
        root: Path,
        order_file: Path,
        on_switch: Callable[[Version], None],
        measure: Callable[[], Container] = measure,
        api_keys: ApiKeys | None = None,
        memory_high: Callable[[], MemoryHigh | None] = lambda: None,
        tracer: Tracer | None = None,
    ) -> None:
        self.state = state
        self.limits = limits
        self.dispatcher = Dispatcher(limits, Metrics(CollectorRegistry()))
        self._voices = voices
        self._on_switch = on_switch
        patience = Patience(kill_seconds=limits.kill_seconds)
        self.supervisor = Supervisor(launch, version, state, self.dispatcher, patience, on_switch=self._switch)
        second = SecondEngine(self.supervisor, measure)
        metrics = self.dispatcher.metrics
        self._succession = Succession(
            self.supervisor,
            state,
            metrics,
            second,
            order_file=order_file,
            root=root,
            tick_seconds=limits.order_seconds,
        )
        self._speech = Speech(state, self.dispatcher, voices, self.supervisor.want_engine, tracer)
        pages = Pages(state, self.dispatcher, voices, memory_high)
        app = build_app(
            state,
            pages,
            self._speech,
            sockets[1].getsockname()[1],
            lambda api: api if api_keys is None else Guard(api, api_keys, metrics),
        )
        self._server = make_server(app, limits, sockets[1].getsockname()[1])
        self._sockets = sockets
        self._asked_to_stop = asyncio.Event()
        self._asked_to_hurry = asyncio.Event()
        self._tell_size(version)

    async def run(self, first: EngineProcess | None) -> Outcome | None:
        """Serve until told to stop (None) or until there is no engine to be had (why). `first` was started already."""
        loop = asyncio.get_running_loop()
        serving = loop.create_task(self._server.serve(sockets=list(self._sockets)))
        supervising = loop.create_task(self.supervisor.run(first))
        stopping = loop.create_task(self._asked_to_stop.wait())
        succeeding = loop.create_task(self._succession.run())
        await _first_of(serving, supervising, stopping)
        succeeding.cancel()
        await self._succession.stop()
        if not supervising.done():
            await self._drain()
            await _first_of(loop.create_task(self.supervisor.stop()), supervising)
            self.supervisor.kill()
        outcome = await supervising
        self._end_requests()
        self._server.finish(now=self._asked_to_hurry.is_set())
        await serving
        stopping.cancel()
        return outcome

    def stop(self) -> None:
        """Drain and end; the second time, end at once. What SIGTERM does."""
        if self._asked_to_stop.is_set():
            self._asked_to_hurry.set()
        self._asked_to_stop.set()

    def handle_signals(self, numbers: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGINT)) -> None:
        """Let these signals call `stop`."""
        for number in numbers:
            asyncio.get_running_loop().add_signal_handler(number, self.stop)

    def _switch(self, version: Version) -> None:
        self._voices.follow(version.directory)
        self._tell_size(version)
        self._on_switch(version)

    def _tell_size(self, version: Version) -> None:
        if version.identity.staged_bytes is not None:
            self.dispatcher.metrics.staged_bytes.set(version.identity.staged_bytes)

    async def _drain(self) -> None:
        """Not ready any more, but serving what still comes, until there is nothing to wait for or patience is over."""
        self.state.draining = True
        log.info("draining", extra={"requests": self._speech.active})
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.limits.drain_seconds
        quiet_since = loop.time()
        while loop.time() < deadline:
            if self._speech.active:
                quiet_since = loop.time()
            elif not self._is_kept_open() or loop.time() - quiet_since > self.limits.linger_seconds:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._asked_to_hurry.wait(), DRAIN_TICK_SECONDS)
                return

    def _is_kept_open(self) -> bool:
        """Whether someone was promised another request: whose last response was too early for `Connection: close`."""
        return bool(self._server.server_state.connections)

    def _end_requests(self) -> None:
        self.dispatcher.end(problems.stopping(STOPPING_RETRY_SECONDS))


async def _first_of(*tasks: asyncio.Task[object] | asyncio.Task[None]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

"""The engine processes one after the other: replaced when they die, until the front gives up or is told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from cosyvoice_worker.outcome import Outcome
from cosyvoice_worker.server import postmortem, problems
from cosyvoice_worker.server.dispatcher import Dispatcher
from cosyvoice_worker.server.engine_life import EngineLife, EngineProcess, Patience
from cosyvoice_worker.server.engine_rules import DEATHS_WITHIN_SECONDS, gives_up, recent_deaths
from cosyvoice_worker.server.oom import oom_kills
from cosyvoice_worker.server.state import FAILED, FrontState

log = logging.getLogger(__name__)


class Supervisor:
    """`run()` once. `launch` starts an engine process."""

    def __init__(
        self,
        launch: Callable[[], EngineProcess],
        state: FrontState,
        dispatcher: Dispatcher,
        patience: Patience,
        count_oom_kills: Callable[[], int | None] = oom_kills,
    ) -> None:
        self._launch = launch
        self._state = state
        self._dispatcher = dispatcher
        self._patience = patience
        self._count_oom_kills = count_oom_kills
        self._life: EngineLife | None = None
        self._wanted = asyncio.Event()
        self._stopping = asyncio.Event()
        self._served = False
        self._deaths: list[float] = []

    def want_engine(self) -> None:
        """Load now, if nothing has been loaded yet."""
        self._wanted.set()

    async def run(self, first: EngineProcess | None) -> Outcome | None:
        """Keep an engine running, beginning with `first` if it was started already. None when stopped, else why not."""
        if first is None and self._state.lazy:
            await self._wanted.wait()
        engine = first
        while not self._stopping.is_set():
            try:
                engine = engine or self._launch()
            except OSError as error:
                return postmortem.not_started(error)
            self._life = EngineLife(engine, self._state, self._dispatcher, self._patience, self._count_oom_kills)
            death = await self._life.run()
            if self._stopping.is_set():
                break
            outcome = postmortem.outcome_of(death)
            self._bury(self._life, outcome)
            end = self._end_after(outcome)
            if end is not None:
                self._state.phase = FAILED
                return end
            self._tell_replacement(engine, outcome)
            engine = None
        return None

    async def stop(self) -> None:
        """End the engine; `run` returns None soon."""
        self._stopping.set()
        self._wanted.set()
        if self._life is not None:
            await self._life.shut_down()

    def kill(self) -> None:
        """End the engine at once."""
        self._stopping.set()
        self._wanted.set()
        if self._life is not None:
            self._life.engine.kill()

    def _bury(self, life: EngineLife, outcome: Outcome) -> None:
        self._served = self._served or life.served
        self._deaths.append(asyncio.get_running_loop().time())
        self._state.engine_ready = False
        self._state.engine_pid = None
        self._state.failure = outcome
        self._dispatcher.detach()
        problem = problems.engine_died(self._dispatcher.retry_after(1))
        self._dispatcher.end_running(problem)
        if not (self._state.lazy and self._served):
            self._dispatcher.end_waiting(problem)

    def _tell_replacement(self, engine: EngineProcess, outcome: Outcome) -> None:
        """Why another engine is started. An end of the front itself is told by who ends it."""
        self._state.restarts += 1
        self._dispatcher.metrics.engine_restarts.labels(reason=outcome.reason.value).inc()
        fields = outcome.log_fields() | {"engine": engine.pid, "restarts": self._state.restarts}
        log.error("the engine is replaced: %s", outcome.message, extra=fields)

    def _end_after(self, outcome: Outcome) -> Outcome | None:
        """Why the front ends now; None when it goes on with another engine."""
        if not self._served:
            return outcome
        now = self._deaths[-1]
        if gives_up(self._deaths, now):
            return postmortem.too_many_deaths(
                len(recent_deaths(self._deaths, now)), DEATHS_WITHIN_SECONDS / 60, outcome
            )
        self._deaths = recent_deaths(self._deaths, now)
        return None

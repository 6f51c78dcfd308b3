"""The engine that serves: replaced when it dies, or when another one beside it takes over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from cosyvoice_worker import cgroup
from cosyvoice_worker.outcome import Outcome, Reason
from cosyvoice_worker.server import postmortem, problems
from cosyvoice_worker.server.dispatcher import Dispatcher
from cosyvoice_worker.server.engine_life import EngineLife, EngineProcess, Patience
from cosyvoice_worker.server.engine_rules import DEATHS_WITHIN_SECONDS, gives_up, recent_deaths
from cosyvoice_worker.server.oom_kills import OomKills
from cosyvoice_worker.server.retirement import retire
from cosyvoice_worker.server.state import FAILED, FrontState
from cosyvoice_worker.server.version import Version

log = logging.getLogger(__name__)


class Launch(Protocol):
    """Starts an engine process for a version; raises OSError. `memory_bytes` bounds what it may hold for itself."""

    def __call__(self, version: Version, memory_bytes: int | None = None) -> EngineProcess: ...


class Supervisor:
    """`run()` once. `version` is what an engine is started for; `on_switch` is told when that changes."""

    def __init__(
        self,
        launch: Launch,
        version: Version,
        state: FrontState,
        dispatcher: Dispatcher,
        patience: Patience,
        *,
        on_switch: Callable[[Version], None],
        count_oom_kills: Callable[[], int | None] = cgroup.oom_kills,
    ) -> None:
        self.version = version
        self.serving: EngineLife | None = None
        self.retiring: asyncio.Task[None] | None = None
        self._candidate: EngineLife | None = None
        self._launch = launch
        self._state = state
        self._dispatcher = dispatcher
        self._patience = patience
        self._on_switch = on_switch
        self._oom_kills = OomKills(count_oom_kills)
        self._lives: set[EngineLife] = set()
        self._wanted = asyncio.Event()
        self._taken_over = asyncio.Event()
        self._stopping = asyncio.Event()
        self._served = False
        self._deaths: list[float] = []

    @property
    def settled(self) -> bool:
        """Whether there is one engine, which serves; or none yet, because none has been wanted."""
        if self.retiring is not None and not self.retiring.done():
            return False
        return self._state.engine_ready or (self._state.lazy and not self._wanted.is_set())

    def want_engine(self) -> float:
        """Load now, if nothing has been loaded yet; the seconds that this may take."""
        self._wanted.set()
        return self.version.load_seconds

    async def run(self, first: EngineProcess | None) -> Outcome | None:
        """Keep an engine running, beginning with `first` if it was started already. None when stopped, else why not."""
        if first is None and self._state.lazy:
            await self._wanted.wait()
        try:
            return await self._keep(first)
        finally:
            self.kill()
            ends = [life.ended for life in self._lives]
            await asyncio.gather(*ends, *([] if self.retiring is None else [self.retiring]))

    def start_beside(
        self, version: Version, memory_bytes: int | None, changed: Callable[[EngineLife], None]
    ) -> EngineLife:
        """Start a second engine, of which `changed` is told each phase. Raises OSError."""
        self._candidate = self._begin(self._launch(version, memory_bytes), version, changed)
        return self._candidate

    def take_over(self, life: EngineLife) -> None:
        """From now on `life`, which is ready, serves. The engine before it ends when it has nothing more to do."""
        before = self.serving
        if life.version.identity.revision != self.version.identity.revision:
            self._deaths.clear()
        self.serving, self.version, self._candidate = life, life.version, None
        self._state.identity = life.version.identity
        self._show(life)
        self._on_switch(life.version)
        self._wanted.set()
        self._taken_over.set()
        if before is not None:
            self.retiring = asyncio.get_running_loop().create_task(self._retire(before))

    async def stop(self) -> None:
        """End the engines; `run` returns None soon."""
        self._stopping.set()
        self._wanted.set()
        await asyncio.gather(*(life.shut_down() for life in self._lives))

    def kill(self) -> None:
        """End the engines at once."""
        self._stopping.set()
        self._wanted.set()
        for life in self._lives:
            life.engine.kill()

    async def _keep(self, engine: EngineProcess | None) -> Outcome | None:
        while not self._stopping.is_set():
            if self.serving is None:
                try:
                    self.serving = self._begin(engine or self._launch(self.version), self.version, self._show)
                except OSError as error:
                    return postmortem.not_started(error)
                self._show(self.serving)
            life, engine = self.serving, None
            await self._end_or_successor_of(life)
            if self._stopping.is_set():
                break
            if life is not self.serving:
                continue
            outcome = postmortem.outcome_of(life.ended.result())
            self._bury(life, outcome)
            end = self._end_after(outcome)
            if end is not None:
                self._state.phase = FAILED
                return end
            self._tell_replacement(life.engine, outcome)
        return None

    async def _end_or_successor_of(self, life: EngineLife) -> None:
        self._taken_over.clear()
        taken_over = asyncio.get_running_loop().create_task(self._taken_over.wait())
        await asyncio.wait({life.ended, taken_over}, return_when=asyncio.FIRST_COMPLETED)
        taken_over.cancel()

    def _begin(self, engine: EngineProcess, version: Version, changed: Callable[[EngineLife], None]) -> EngineLife:
        life = EngineLife(engine, version, self._dispatcher, self._patience, oom_kills=self._oom_kills, changed=changed)
        life.start()
        self._lives.add(life)
        life.ended.add_done_callback(lambda _: self._lives.discard(life))
        return life

    def _show(self, life: EngineLife) -> None:
        """What is told of the worker is what its serving engine is."""
        if life is not self.serving:
            return
        state = self._state
        state.phase, state.engine_pid = life.phase, life.engine.pid
        if life.ready is not None and life.lane is not None:
            ready = life.ready
            state.device, state.dtype, state.sample_rate = ready.device, ready.dtype, ready.sample_rate
            state.load, state.failure, state.engine_ready = dict(ready.load), None, True
            self._served = True
            self._dispatcher.attach(life.lane)

    async def _retire(self, life: EngineLife) -> None:
        await retire(life)
        if life.lane is not None:
            self._dispatcher.detach(life.lane, problems.engine_died(self._dispatcher.retry_after(1)))
        if self.serving is not None:
            self.serving.bound(None)

    def _bury(self, life: EngineLife, outcome: Outcome) -> None:
        self.serving = None
        self._deaths.append(asyncio.get_running_loop().time())
        self._state.engine_ready = False
        self._state.engine_pid = None
        self._state.failure = outcome
        problem = problems.engine_died(self._dispatcher.retry_after(1))
        if life.lane is not None:
            self._dispatcher.detach(life.lane, problem)
        if not (self._state.lazy and self._served):
            self._dispatcher.end_waiting(problem)
        if outcome.reason is Reason.OUT_OF_MEMORY and self._candidate is not None:
            self._candidate.give_up(postmortem.crowded_out(outcome))

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

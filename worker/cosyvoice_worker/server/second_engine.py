"""A second engine beside the one that serves: there is room for it, it loads, and it takes over or leaves no trace."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from cosyvoice_worker import cgroup
from cosyvoice_worker.outcome import Outcome, Reason
from cosyvoice_worker.server import postmortem, room
from cosyvoice_worker.server.engine_life import EngineLife
from cosyvoice_worker.server.supervisor import Supervisor
from cosyvoice_worker.server.version import Version

SETTLED_TICK_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The memory of the container in bytes: its limit, where it is slowed down (None: nowhere), what is used of it."""

    limit: int | None
    used: int
    high: int | None = None


def measure() -> Container:
    """Look at the container's cgroup."""
    return Container(limit=cgroup.memory_limit(), used=cgroup.memory_used(), high=cgroup.memory_high())


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why the second engine did not take over. `room`: for want of room, so it says nothing of its version."""

    outcome: Outcome
    room: bool = False


class SecondEngine:
    """One at a time. `measure` tells the memory of the container."""

    def __init__(self, supervisor: Supervisor, measure: Callable[[], Container] = measure) -> None:
        self._supervisor = supervisor
        self._measure = measure

    async def bring_up(self, version: Version, changed: Callable[[EngineLife], None]) -> Failure | None:
        """Load `version` beside the engine that serves and let it take over. None when it has, else why not.

        Waits until the worker is settled, so that there never are three. When cancelled, the second engine is gone.
        """
        while not self._supervisor.settled:  # noqa: ASYNC110 - what is waited for are plain values
            await asyncio.sleep(SETTLED_TICK_SECONDS)
        first = self._supervisor.serving
        shares = self._shares(first)
        if isinstance(shares, Outcome):
            return Failure(outcome=shares, room=True)
        try:
            memory_bytes = None if shares is None else shares.second
            second = self._supervisor.start_beside(version, memory_bytes, changed)
        except OSError as error:
            return Failure(outcome=postmortem.not_started(error))
        if first is not None and shares is not None:
            first.bound(shares.first_growth)
        try:
            await _ready_or_ended(second)
            if second.ended.done():
                return _failure_of(second)
            self._supervisor.take_over(second)
            return None
        finally:
            if self._supervisor.serving is not second:
                await _end(second)
                if first is not None:
                    first.bound(None)

    def _shares(self, first: EngineLife | None) -> room.Shares | Outcome | None:
        container = self._measure()
        if first is None:
            return None
        bounds = [bound for bound in (container.limit, container.high) if bound is not None]
        if not bounds:
            return None
        now = first.usage.see(first.engine.private_bytes())
        slowed = container.high == min(bounds)
        return room.share(
            room.Memory(limit=min(bounds), used=container.used, first=now, first_peak=first.usage.peak, is_high=slowed)
        )


async def _ready_or_ended(life: EngineLife) -> None:
    ready = asyncio.get_running_loop().create_task(life.is_ready.wait())
    try:
        await asyncio.wait({ready, life.ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ready.cancel()


def _failure_of(life: EngineLife) -> Failure:
    death = life.ended.result()
    crowded_out = death.killed is not None and death.killed.reason is Reason.OUT_OF_MEMORY
    return Failure(outcome=postmortem.outcome_of(death), room=crowded_out)


async def _end(life: EngineLife) -> None:
    with contextlib.suppress(ProcessLookupError):
        life.engine.kill()
    await asyncio.wait({life.ended})

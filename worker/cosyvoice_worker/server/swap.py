"""Carrying one order out: wait until its revision is staged, load it in a second engine, let that one take over."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from cosyvoice_worker.metrics import Metrics
from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError
from cosyvoice_worker.server.engine_life import EngineLife
from cosyvoice_worker.server.report import SwapReport
from cosyvoice_worker.server.second_engine import SecondEngine
from cosyvoice_worker.server.version import staged_version
from cosyvoice_worker.staging import orders
from cosyvoice_worker.staging.orders import Order

log = logging.getLogger(__name__)


class Swap:
    """`run()` once; it may be cancelled. `root` is where the stager works; `begun` holds the orders of this process."""

    def __init__(
        self,
        order: Order,
        root: Path,
        second: SecondEngine,
        metrics: Metrics,
        *,
        begun: set[Order],
        tick_seconds: float,
    ) -> None:
        self.report = SwapReport(order=order.name, revision=order.revision)
        self._order = order
        self._root = root
        self._second = second
        self._metrics = metrics
        self._begun = begun
        self._tick_seconds = tick_seconds

    async def run(self) -> None:
        """Carry the order out; its report says how far it is, and at last how it ended."""
        try:
            await self._carry_out()
        except asyncio.CancelledError:
            if not self.report.over:
                self.report.fail(_ended("another order came, or the worker was told to stop"))
                self._count("superseded")
            raise
        except WorkerError as error:
            self._fail(error.outcome)
        except OSError as error:
            self._fail(_ended(f"{error}"))

    async def _carry_out(self) -> None:
        if self._was_begun_before():
            self._fail(_ended("the worker restarted during the swap"))
            return
        staged = await self._staged()
        if staged.state == "Failed":
            self._fail(staged.outcome or _ended("staging failed and told no reason"), room=staged.room)
            return
        version = staged_version(self._order.revision, self._root)
        orders.begin(self._root, self._order)
        self._begun.add(self._order)
        self.report.state = "Loading"
        log.info("loading another version beside the one that serves", extra=self._fields())
        failure = await self._second.bring_up(version, self._tell_phase)
        if failure is not None:
            self._fail(failure.outcome, room=failure.room)
            return
        self.report.state, self.report.phase = "Switched", None
        self._count("switched")
        log.info("another version has taken over", extra=self._fields())

    def _was_begun_before(self) -> bool:
        return self._order not in self._begun and orders.was_begun(self._root, self._order)

    async def _staged(self) -> orders.Result:
        """What the stager says when it has done its part, however long that takes."""
        while True:
            result = orders.read_result(self._root, self._order)
            if result is not None and result.state != "Staging":
                return result
            await asyncio.sleep(self._tick_seconds)

    def _tell_phase(self, second: EngineLife) -> None:
        self.report.phase = second.phase
        if second.ready is not None:
            self.report.load = dict(second.ready.load)

    def _fail(self, outcome: Outcome | dict[str, object], *, room: bool = False) -> None:
        self.report.fail(outcome, room=room)
        self._count("no-room" if room else "failed")
        told = self.report.failure or {}
        log.error("the swap failed: %s", told.get("message", ""), extra={**self._fields(), "failure": told})

    def _count(self, result: str) -> None:
        self._metrics.engine_swaps.labels(result=result).inc()

    def _fields(self) -> dict[str, object]:
        return {"order": self._order.name, "to_revision": self._order.revision}


def _ended(why: str) -> Outcome:
    return Outcome(reason=Reason.ENGINE_DIED, phase=Phase.MAP, message=why)

"""What comes after the engine that serves: the revision that is ordered, or a fresh one of the same.

An order goes before everything: whatever is under way then is given up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path

from cosyvoice_worker.metrics import Metrics
from cosyvoice_worker.server import postmortem
from cosyvoice_worker.server.recycle import Recycling
from cosyvoice_worker.server.second_engine import SecondEngine
from cosyvoice_worker.server.state import FrontState
from cosyvoice_worker.server.supervisor import Supervisor
from cosyvoice_worker.server.swap import Swap
from cosyvoice_worker.staging import orders
from cosyvoice_worker.staging.orders import Order

log = logging.getLogger(__name__)


class Succession:
    """`run()` until `stop()`. `order_file` holds the order or nothing; `root` is where the stager works."""

    def __init__(
        self,
        supervisor: Supervisor,
        state: FrontState,
        metrics: Metrics,
        second: SecondEngine,
        *,
        order_file: Path,
        root: Path,
        tick_seconds: float,
    ) -> None:
        self._supervisor = supervisor
        self._state = state
        self._metrics = metrics
        self._second = second
        self._recycling = Recycling(supervisor, second, metrics)
        self._order_file = order_file
        self._root = root
        self._tick_seconds = tick_seconds
        self._text = ""
        self._order: Order | None = None
        self._begun: set[Order] = set()
        self._attempt: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Look again and again for what is wanted, and do it."""
        while True:
            order = self._read()
            if order != self._order:
                await self._give_up()
                self._order = order
                self._obey(order)
            elif (self._attempt is None or self._attempt.done()) and self._supervisor.settled:
                self._recycle()
            await asyncio.sleep(self._tick_seconds)

    async def stop(self) -> None:
        """Give up what is under way: the second engine is gone after this."""
        self._order = None
        await self._give_up()

    def _read(self) -> Order | None:
        """The order there is. What cannot be read as one is none, and is told once."""
        try:
            text = self._order_file.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            text = ""
        order = orders.parse(text)
        if order is None and text and text != self._text:
            log.error("an order that cannot be understood is ignored", extra={"order": text[:200]})
        self._text = text
        return order

    def _obey(self, order: Order | None) -> None:
        if order is None:
            self._state.swap = None
            return
        tick, begun = self._tick_seconds, self._begun
        swap = Swap(order, self._root, self._second, self._metrics, begun=begun, tick_seconds=tick)
        self._state.swap = swap.report
        if order.revision == self._supervisor.version.identity.revision:
            swap.report.state = "Switched"
        else:
            self._begin(swap.run())

    def _recycle(self) -> None:
        reason = self._recycling.due_now()
        if reason is not None:
            self._begin(self._recycling.run(reason))

    def _begin(self, attempt: Coroutine[None, None, None]) -> None:
        self._attempt = asyncio.get_running_loop().create_task(attempt)
        self._attempt.add_done_callback(self._tell_defect)

    def _tell_defect(self, attempt: asyncio.Task[None]) -> None:
        """An exception that nobody foresaw: the engine that serves goes on, and the swap is not left hanging."""
        error = None if attempt.cancelled() else attempt.exception()
        if error is not None:
            log.error("what was to come after the engine that serves failed", exc_info=error)
            if self._state.swap is not None and not self._state.swap.over:
                self._state.swap.fail(postmortem.defect(error))

    async def _give_up(self) -> None:
        if self._attempt is not None:
            self._attempt.cancel()
            await asyncio.wait({self._attempt})
            self._attempt = None

"""`stage --follow`: stages the versions that are ordered of a running pod, beside the one that it serves.

Level-triggered: each step looks at the order and at what is there, so it does not matter when this process was killed.
The order's answer lies on the tmpfs (`orders.py`), which outlives the container.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cosyvoice_worker import documents
from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError, fail
from cosyvoice_worker.settings import parse_settings, read_document
from cosyvoice_worker.staging import orders
from cosyvoice_worker.staging.attempt import Attempt
from cosyvoice_worker.staging.boundary import boundary_of
from cosyvoice_worker.staging.orders import Order, Result
from cosyvoice_worker.staging.retention import Retention
from cosyvoice_worker.staging.space import NoRoomError
from cosyvoice_worker.staging.stage import stage
from cosyvoice_worker.staging.task import Task

POLL_SECONDS = 0.5
# A stager that is killed each time it stages the same order is not to go on for ever.
MOST_TRIES = 3
# A version that is no longer to be served is let go when its engine has answered its last request.
PATIENCE_SECONDS = 90.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Running:
    """An order that is being staged."""

    order: Order
    attempt: Attempt
    tries: int
    started: float


class Follower:
    """Follows the orders in the file `swap`, for a pod whose model.json is `config` and whose tmpfs is `root`."""

    def __init__(self, config: Path, swap: Path, root: Path, stall_seconds: float) -> None:
        self._config = config
        self._swap = swap
        self._root = root
        self._stall_seconds = stall_seconds
        self._retention = Retention(config, root)
        self._running: Running | None = None
        self._waiting_for: Order | None = None

    def step(self) -> None:
        """Look once, for POLL_SECONDS at most while something is being staged."""
        order = self._order()
        if self._running is not None and self._running.order != order:
            self._supersede(self._running)
        if self._running is not None:
            self._look(self._running)
        elif order is not None and self._is_open(order):
            self._take(order)
        else:
            self._retention.let_go(order)

    def close(self) -> None:
        """End what is being staged; its answer stays Staging, for the next stager to begin again."""
        if self._running is not None:
            self._running.attempt.give_up()
            self._running = None

    @property
    def is_busy(self) -> bool:
        return self._running is not None

    def _order(self) -> Order | None:
        try:
            return orders.parse(self._swap.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return None

    def _is_open(self, order: Order) -> bool:
        """Whether there is something to do. A version that was staged may have had to make room since."""
        result = orders.read_result(self._root, order)
        if result is None or result.state == "Staging":
            return True
        return result.state == "Staged" and not self._retention.is_staged(order.revision)

    def _take(self, order: Order) -> None:
        if self._retention.is_current(order.revision) and self._retention.is_staged(order.revision):
            self._answer(order, Result(order.name, order.revision, "Staged"))
            return
        path = documents.of_revision(str(self._config), order.revision)
        if path is None:
            if self._waiting_for != order:
                log.warning("no document of the ordered revision yet", extra={"order": order.name})
            self._waiting_for = order
            return
        before = orders.read_result(self._root, order)
        tries = before.tries + 1 if before is not None and before.state == "Staging" else 1
        if tries > MOST_TRIES:
            self._answer(order, self._killed_too_often(order))
            return
        try:
            task = self._task(path, order.revision)
        except WorkerError as error:
            self._answer(order, _failed(order, error, tries))
            return
        self._answer(order, Result(order.name, order.revision, "Staging", tries=tries))
        attempt = Attempt(partial(stage, task, self._root), self._root, self._stall_seconds)
        self._running = Running(order, attempt, tries, time.monotonic())

    def _task(self, path: str, revision: str) -> Task:
        """What to stage for the document at `path`, which was found by the `revision` it names. Raises WorkerError."""
        document = read_document(path, Phase.STAGE)
        settings = parse_settings(document, Phase.STAGE, name=path)
        if settings.revision != revision:
            message = f"{path} names two revisions, {revision} and {settings.revision}"
            raise fail(Reason.INVALID_CONFIG, Phase.STAGE, message, file=path)
        return Task(
            settings=settings,
            document=document,
            boundary=boundary_of(settings.source.path),
            at_start=False,
            keep=self._retention.kept(settings.revision),
            patience_seconds=PATIENCE_SECONDS,
        )

    def _look(self, running: Running) -> None:
        order = running.order
        try:
            staged = running.attempt.result(POLL_SECONDS)
        except WorkerError as error:
            self._running = None
            elapsed = replace(error.outcome, elapsed_seconds=time.monotonic() - running.started)
            told = NoRoomError(elapsed, error.room) if isinstance(error, NoRoomError) else WorkerError(elapsed)
            self._answer(order, _failed(order, told, running.tries))
            return
        if staged is not None:
            self._running = None
            self._answer(order, Result(order.name, order.revision, "Staged", tries=running.tries))

    def _supersede(self, running: Running) -> None:
        log.info("another order came", extra={"order": running.order.name})
        self.close()
        orders.forget_results(self._root, but=None)

    def _answer(self, order: Order, result: Result) -> None:
        outcome = {} if result.outcome is None else result.outcome
        level = logging.ERROR if result.state == "Failed" else logging.INFO
        words = str(outcome.get("message", f"order {result.state}"))
        log.log(level, words, extra={"order": order.name, "state": result.state, "reason": outcome.get("reason")})
        orders.forget_results(self._root, but=order)
        orders.write_result(self._root, result)

    def _killed_too_often(self, order: Order) -> Result:
        outcome = Outcome(
            reason=Reason.OUT_OF_MEMORY,
            phase=Phase.STAGE,
            message=f"the stager was killed {MOST_TRIES} times while it staged revision {order.revision}, most likely "
            "for want of memory: raise the memory limit of the stager container",
        )
        return _failed(order, NoRoomError(outcome, room=True), MOST_TRIES)


def _failed(order: Order, error: WorkerError, tries: int) -> Result:
    return Result(
        order.name,
        order.revision,
        "Failed",
        outcome=json.loads(error.outcome.to_json()),
        room=isinstance(error, NoRoomError) and error.room,
        tries=tries,
    )

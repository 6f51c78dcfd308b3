"""How a worker that serves takes an order to load another revision beside the one it serves."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.unit.operator.simulation.fates import FLAKY_TRIES, LOAD_ENDS, OTHER_BYTES, STAGE_ENDS, End, Fate
from tests.unit.operator.simulation.pods import Document, Run, Swap

STAGE, LOAD, BREAKER = timedelta(seconds=3), timedelta(seconds=4), timedelta(seconds=30)
NO_ROOM = End(71, reason="OutOfMemory", retryable=True)
INTERRUPTED = End(73, reason="EngineDied", retryable=True)
HUNG = End(72, reason="LoadTimeout", retryable=True)


def take(run: Run, now: datetime, *, room: bool) -> None:
    """Take up the order that is mounted, if it is a new one and what it names is there."""
    order = ".".join((run.order or "").split(".")[:2])
    document = _find(run, order.split(".", maxsplit=1)[0])
    if run.place != "ready" or document is None or (run.swap is not None and run.swap.order == order):
        return
    run.swap = Swap(order, document, due=now + STAGE)
    if document.revision == run.serves:
        run.swap.state, run.swap.due = "Switched", None
    elif not room:
        run.swap.room = True
        _fail(run.swap, NO_ROOM)


def move(run: Run, fate: Fate, digest: str, now: datetime) -> None:
    """The next step of the swap: `fate` is that of what it loads, `digest` what its source holds."""
    swap = run.swap
    if swap is None or run.place != "ready":
        return
    if swap.state == "Staging":
        changed = swap.document.pin not in {None, digest}
        if (end := OTHER_BYTES if changed else STAGE_ENDS.get(fate)) is not None:
            _fail(swap, end)
            return
        swap.digest = digest
        run.has.add(swap.document.revision)
        swap.state, swap.due = "Loading", now + (BREAKER if fate is Fate.HANG else LOAD)
        return
    tries = int(swap.order.rpartition(".")[2])
    end = HUNG if fate is Fate.HANG else LOAD_ENDS.get(fate)
    if end is not None and not (fate is Fate.FLAKY and tries % (FLAKY_TRIES + 1) == 0):
        _fail(swap, end)
        return
    swap.state, swap.due = "Switched", None
    run.loads, run.digest = swap.document, swap.digest
    if fate is Fate.DIES:
        run.due = now + LOAD


def interrupt(run: Run) -> None:
    """The worker's container ended: what was begun is not begun again."""
    if run.swap is not None and run.swap.state != "Failed":
        _fail(run.swap, INTERRUPTED)


def told(run: Run) -> dict[str, Any] | None:
    """The swap as /status has it."""
    swap = run.swap
    if swap is None:
        return None
    failure = None
    if swap.end is not None:
        reason = swap.end.reason or "EngineDied"
        failure = {"schema": 1, "reason": reason, "phase": "Map", "message": f"the second engine ended with {reason}"}
    phase = "Map" if swap.state == "Loading" else None
    return {
        "order": swap.order,
        "revision": swap.document.revision,
        "state": swap.state,
        "phase": phase,
        "room": swap.room,
        "failure": failure,
        "load": {},
    }


def _fail(swap: Swap, end: End) -> None:
    swap.state, swap.due, swap.end = "Failed", None, end


def _find(run: Run, revision: str) -> Document | None:
    return next((document for document in run.mounted if document.revision == revision), None)

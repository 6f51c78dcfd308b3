"""The record of the rollout that goes on: to which revision, and how pods are replaced meanwhile.

It is kept in the status, so that whoever takes over goes on in the same way.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from cosyvoice_operator import capacity, times
from cosyvoice_operator.api import Model
from cosyvoice_operator.api_status import RolloutRecord
from cosyvoice_operator.failures import Failure

ROLLING_UPDATE = "RollingUpdate"
REPLACE = "Replace"
HOT_SWAP = "HotSwap"


def record(
    model: Model, revision: str, lack: Failure | None, now: datetime, *, returning: bool, swaps: bool
) -> RolloutRecord:
    """The record after this pass, in which the Deployment's pods are to load `revision`.

    `lack` is the want of room that was found; `returning`: this is the way back from the rollout recorded before;
    `swaps`: the pods that run are to load it in place.
    """
    before = model.status.rollout
    goes_on = before is not None and before.revision == revision
    strategy = _strategy(
        model, lack, keeps=before is not None and before.strategy == REPLACE and (goes_on or returning)
    )
    swapped = goes_on and before is not None and before.strategy == HOT_SWAP
    if swaps or (swapped and revision == model.status.last_good_revision):
        strategy = HOT_SWAP
    if before is not None and goes_on:
        return before if before.strategy == strategy else replace(before, strategy=strategy)
    attempt = before.attempt + 1 if before else 1
    return RolloutRecord(revision=revision, strategy=strategy, attempt=attempt, started_at=times.write(now))


def _strategy(model: Model, lack: Failure | None, *, keeps: bool) -> str:
    """How pods are replaced. `keeps`: one is taken away first already, because there was no room.

    The way back goes the way that was come: where there was no room for one pod more, there is none now.
    """
    wanted = model.spec.rollout
    if wanted.strategy == REPLACE:
        return REPLACE
    makes_room = keeps or (lack is not None and capacity.is_helped_by_replacing(lack))
    return REPLACE if makes_room and wanted.on_no_capacity == capacity.REPLACE else ROLLING_UPDATE

"""Rollouts without a spare machine: whether room is all that a new revision waits for, and whether to make some.

Nothing is counted here: the new pod is tried, and the scheduler or the quota says that there is no room. A revision is
never condemned for it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from cosyvoice_operator.failures import FAILED_CREATE, UNSCHEDULABLE, Failure, Verdict
from cosyvoice_operator.observed import Observed

WAIT = "Wait"
REPLACE = "Replace"
FAIL = "Fail"

# A pod that a terminating one makes room for is unschedulable for a moment; so long a wait is want of room.
PATIENCE = timedelta(seconds=20)

_QUOTA = "exceeded quota"
# The scheduler's words where one pod less on the node would help; a selector that no node matches is none of them.
_HELPED_BY_REPLACING = ("Insufficient ", "Too many pods", "free ports", "anti-affinity rules", _QUOTA)


def lacking(observed: Observed, revision: str, found: tuple[Failure, ...], now: datetime) -> Failure | None:
    """What keeps the pods of `revision` out although another revision runs, if it is want of room."""
    gravest = found[0] if found else None
    if gravest is None or gravest.verdict is not Verdict.EXTERNAL or not observed.scaled_revisions - {revision}:
        return None
    is_room = gravest.reason == UNSCHEDULABLE or (gravest.reason == FAILED_CREATE and _QUOTA in gravest.message)
    waited = is_room and gravest.since is not None and now - gravest.since >= PATIENCE
    return gravest if waited else None


def is_helped_by_replacing(lack: Failure) -> bool:
    """Whether a pod of the old revision that goes makes the room that lacks."""
    return any(words in lack.message for words in _HELPED_BY_REPLACING)

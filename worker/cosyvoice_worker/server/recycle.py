"""A fresh engine for the same version: when it is called for, and making way for it."""

from __future__ import annotations

import asyncio
import logging

from cosyvoice_worker.metrics import Metrics
from cosyvoice_worker.server.second_engine import SecondEngine
from cosyvoice_worker.server.supervisor import Supervisor
from cosyvoice_worker.settings import Recycle

RETRY_SECONDS = 60.0
MAX_RETRY_SECONDS = 3600.0

log = logging.getLogger(__name__)


def due(recycle: Recycle, requests: int, growth: int) -> str | None:
    """What calls for a fresh engine after `requests` and `growth` bytes: the field's name; None when nothing does."""
    if recycle.max_requests is not None and requests >= recycle.max_requests:
        return "maxRequests"
    if recycle.max_memory_growth_bytes is not None and growth >= recycle.max_memory_growth_bytes:
        return "maxMemoryGrowth"
    return None


def retry_after(failures: int) -> float:
    """Seconds to wait after so many failures in a row."""
    return float(min(MAX_RETRY_SECONDS, RETRY_SECONDS * 2 ** (min(failures, 16) - 1)))


class Recycling:
    """`due_now()` asks, `run()` does; it may be cancelled."""

    def __init__(self, supervisor: Supervisor, second: SecondEngine, metrics: Metrics) -> None:
        self._supervisor = supervisor
        self._second = second
        self._metrics = metrics
        self._failures = 0
        self._not_before = 0.0

    def due_now(self) -> str | None:
        """What calls for a fresh engine now; None when nothing does, or when it is too soon after a failure."""
        life = self._supervisor.serving
        if life is None or life.lane is None or asyncio.get_running_loop().time() < self._not_before:
            return None
        return due(self._supervisor.version.recycle, life.lane.requests, life.usage.growth)

    async def run(self, reason: str) -> None:
        """Bring up a fresh engine for `reason`."""
        log.info("a fresh engine is started", extra={"reason": reason})
        failure = await self._second.bring_up(self._supervisor.version, lambda _: None)
        if failure is None:
            self._failures, self._not_before = 0, 0.0
            result = "switched"
            log.info("a fresh engine has taken over", extra={"reason": reason})
        else:
            self._failures += 1
            wait = retry_after(self._failures)
            self._not_before = asyncio.get_running_loop().time() + wait
            result = "no-room" if failure.room else "failed"
            fields = {"why": reason, "retry_seconds": wait, "failure": failure.outcome.log_fields()}
            log.error("no fresh engine: %s", failure.outcome.message, extra=fields)
        self._metrics.engine_recycles.labels(reason=reason, result=result).inc()

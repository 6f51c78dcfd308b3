"""When an engine process is given up, and when the whole worker is. Pure: times are seconds of one monotonic clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STUCK_SECONDS = 30.0
STUCK_STEPS = 10
MAX_DEATHS = 3
DEATHS_WITHIN_SECONDS = 600.0
MAX_RETRY_AFTER = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is known of an engine that serves. `moved_at` is when its step last changed or it was given its request."""

    busy: bool
    moved_at: float
    slowest_step: float


def stuck_after(slowest_step: float) -> float:
    """Seconds without a step after which a busy engine is stuck. `slowest_step` is the longest one of the warm-up."""
    return max(STUCK_SECONDS, STUCK_STEPS * slowest_step)


def is_stuck(progress: Progress, now: float) -> bool:
    """Whether the watchdog kills. An engine with nothing to do makes no steps and is not stuck."""
    return progress.busy and now - progress.moved_at > stuck_after(progress.slowest_step)


def load_is_over(started_at: float, timeout: float, now: float) -> bool:
    """Whether the circuit breaker ends a load: import, map, build and warm-up together have `timeout` seconds."""
    return now - started_at > timeout


def recent_deaths(deaths: Sequence[float], now: float) -> list[float]:
    """The deaths that still count at `now`, oldest first."""
    return [at for at in deaths if now - at <= DEATHS_WITHIN_SECONDS]


def gives_up(deaths: Sequence[float], now: float) -> bool:
    """Whether the worker ends instead of starting one more engine: MAX_DEATHS deaths in DEATHS_WITHIN_SECONDS."""
    return len(recent_deaths(deaths, now)) >= MAX_DEATHS


def retry_after(requests_before: int, seconds_each: float) -> int:
    """Whole seconds after which a refused client may find room: 1 to MAX_RETRY_AFTER."""
    return min(MAX_RETRY_AFTER, max(1, round(requests_before * seconds_each)))

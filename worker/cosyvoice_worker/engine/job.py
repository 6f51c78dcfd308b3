"""One request at work: its signs of progress, and what ends it early."""

from __future__ import annotations

import time
from collections.abc import Callable

from cosyvoice_worker.channel import Beat, EngineMessage, Synthesize

BEAT_SECONDS = 0.2


class CancelledError(Exception):
    """The front no longer wants the request."""


class DeadlinePassedError(Exception):
    """The request's time is over."""


class Steps:
    """Counts steps (a token, a layer of the flow or the vocoder, a chunk); tells the front at most every BEAT_SECONDS.

    `request` is 0 while loading. `slowest` is the longest time between two steps so far, in seconds.
    """

    def __init__(
        self, request: int, send: Callable[[EngineMessage], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.count = 0
        self.slowest = 0.0
        self._request = request
        self._send = send
        self._clock = clock
        self._last = self._sent = clock()

    def __call__(self) -> None:
        now = self._clock()
        self.count += 1
        self.slowest = max(self.slowest, now - self._last)
        self._last = now
        if now - self._sent >= BEAT_SECONDS:
            self._sent = now
            self._send(Beat(id=self._request, step=self.count))


class Job:
    """A request and its state. `step` is called from the model's inner loops; what it raises ends the work."""

    def __init__(self, request: Synthesize, send: Callable[[EngineMessage], None]) -> None:
        self.request = request
        self.id = request.id
        self.received = time.monotonic()
        self._steps = Steps(request.id, send)
        self._cancelled = False
        seconds = request.deadline_seconds
        self._deadline = None if seconds is None else self.received + seconds

    def cancel(self) -> None:
        """From any thread: the next step ends the work."""
        self._cancelled = True

    def step(self) -> None:
        """One more step is due. Raises CancelledError or DeadlinePassedError."""
        if self._cancelled:
            raise CancelledError
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise DeadlinePassedError(f"the request was not finished within {self.request.deadline_seconds:g} s")
        self._steps()

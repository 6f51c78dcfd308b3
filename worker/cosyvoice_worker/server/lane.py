"""One engine's place in the dispatcher: the request it works on, and how that moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cosyvoice_worker.channel import Cancel, FrontMessage, Synthesize
from cosyvoice_worker.server.job import Job, Speaker


class Lane:
    """At most one request at a time. `send` takes messages for the engine; `speaker` is what it speaks with.

    `moved_at` is when the engine last made a step, or was given its request; `requests` counts those it has ended, and
    `on_end` is called after each of them, before the next one begins.
    """

    def __init__(self, send: Callable[[FrontMessage], None], speaker: Speaker, on_end: Callable[[], None]) -> None:
        self.speaker = speaker
        self.job: Job | None = None
        self.moved_at = 0.0
        self.started_at = 0.0
        self.requests = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self._send = send
        self._on_end = on_end
        self._step = -1

    def begin(self, job: Job, now: float) -> None:
        """Give the engine a request; `now` is the event loop's time."""
        self.job, self._step, self.moved_at, self.started_at = job, -1, now, now
        job.speaker, job.started_at = self.speaker, now
        self.idle.clear()
        self._send(
            Synthesize(
                id=job.id,
                text=job.request.input,
                voice=job.request.voice,
                stream=job.request.stream,
                seed=job.seed,
                speed=job.request.speed,
                instructions=job.request.instructions,
                deadline_seconds=max(0.0, job.deadline - now),
            )
        )

    def step(self, step: int, now: float) -> None:
        """The engine tells its step; only another one than before is progress."""
        if step != self._step:
            self._step, self.moved_at = step, now

    def cancel(self) -> None:
        """Tell the engine to stop working on its request. The place is free when the engine says so."""
        if self.job is not None:
            self._send(Cancel(id=self.job.id))

    def end(self) -> None:
        """The engine has no request any more."""
        self.job = None
        self.requests += 1
        self.idle.set()
        self._on_end()

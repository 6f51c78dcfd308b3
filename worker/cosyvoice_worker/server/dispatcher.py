"""The queue in front of the engine: one request at a time, in the order of arrival.

Everything that ends a request comes through here, so that the engine's slot is freed exactly when the engine says so.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable

from cosyvoice_worker.channel import Audio, Beat, Cancel, Done, Failed, FrontMessage, Synthesize
from cosyvoice_worker.metrics import Metrics
from cosyvoice_worker.server import problems
from cosyvoice_worker.server.engine_rules import retry_after
from cosyvoice_worker.server.job import Job
from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.server.problems import Problem
from cosyvoice_worker.server.speech_request import SpeechRequest

_SMOOTHING = 0.2


class Dispatcher:
    """Runs on one event loop, whose clock it uses."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits = limits
        self.metrics = metrics
        self.moved_at = 0.0
        self._ids = itertools.count(1)
        self._waiting: deque[Job] = deque()
        self._running: Job | None = None
        self._send: Callable[[FrontMessage], None] | None = None
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._step = -1
        self._started_at = 0.0
        self._seconds_each = 1.0

    @property
    def queued(self) -> int:
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        return int(self._running is not None)

    def retry_after(self, requests_before: int) -> int:
        """Seconds after which so many requests will have been answered, as far as can be told."""
        return retry_after(requests_before, self._seconds_each)

    def submit(self, request: SpeechRequest, seed: int, arrived: float, seconds: float) -> Job:
        """Queue a request that has `seconds` from its arrival. Raises Problem when the queue is full."""
        if self.queued >= self.limits.queued_requests:
            ahead = self.queued + self.in_flight
            raise problems.queue_full(self.limits.queued_requests, self.retry_after(ahead))
        job = Job(id=next(self._ids), request=request, seed=seed, arrived=arrived, seconds=seconds)
        late = problems.deadline_passed(seconds)
        self._timers[job.id] = asyncio.get_running_loop().call_at(job.deadline, self.cancel, job, late)
        self._waiting.append(job)
        self._start_next()
        return job

    def cancel(self, job: Job, problem: Problem) -> None:
        """End a request early: it leaves the queue, or the engine is told to stop and the slot is free when it has."""
        if job.end is not None:
            return
        if job is self._running and self._send is not None:
            self._send(Cancel(id=job.id))
        elif job in self._waiting:
            self._waiting.remove(job)
        self._finish(job, problem)
        if job.on_cut is not None:
            job.on_cut()
        self._tell_depth()

    def attach(self, send: Callable[[FrontMessage], None]) -> None:
        """An engine is ready: `send` takes messages for it."""
        self._send = send
        self._start_next()

    def detach(self) -> None:
        """The engine is gone."""
        self._send = None

    def end_running(self, problem: Problem) -> None:
        """End the request that the engine had."""
        if self._running is not None:
            self._finish(self._running, problem)
            self._running = None
        self._tell_depth()

    def end_waiting(self, problem: Problem) -> None:
        """End every request that waits."""
        while self._waiting:
            self._finish(self._waiting.popleft(), problem)
        self._tell_depth()

    def receive(self, message: Audio | Done | Failed | Beat) -> None:
        """A message of the engine about a request. One about a request that is no longer there is late, not wrong."""
        job = self._running
        if job is None or message.id != job.id:
            return
        now = asyncio.get_running_loop().time()
        if isinstance(message, Beat):
            if message.step != self._step:
                self._step, self.moved_at = message.step, now
            return
        self.moved_at = now
        if isinstance(message, Audio):
            job.push(message.s16, now)
            if job.request.stream and job.buffered > self.limits.buffered_bytes:
                detail = f"the client left {job.buffered:,} bytes of audio unread, over {self.limits.buffered_bytes:,}"
                self.cancel(job, problems.client_too_slow(detail))
            return
        self._finish(job, _end_of(job, message))
        self._running = None
        self._seconds_each += _SMOOTHING * (now - self._started_at - self._seconds_each)
        self._start_next()

    def _start_next(self) -> None:
        if self._running is None and self._send is not None and self._waiting:
            job = self._waiting.popleft()
            now = asyncio.get_running_loop().time()
            self._running, self._step, self.moved_at, self._started_at = job, -1, now, now
            self.metrics.queue_wait_seconds.observe(now - job.arrived)
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
        self._tell_depth()

    def _finish(self, job: Job, end: Done | Problem) -> None:
        if (timer := self._timers.pop(job.id, None)) is not None:
            timer.cancel()
        job.finish(end)

    def _tell_depth(self) -> None:
        self.metrics.queue_depth.set(self.queued)
        self.metrics.in_flight.set(self.in_flight)


def _end_of(job: Job, message: Done | Failed) -> Done | Problem:
    if isinstance(message, Done) and not message.cancelled:
        return message
    # The engine keeps the same deadline and may be the first to notice; when it stops unasked, that is why.
    if isinstance(message, Done) or message.status == 504:
        return problems.deadline_passed(job.seconds)
    return problems.synthesis_failed(message.status, message.reason, message.message)

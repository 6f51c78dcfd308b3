"""The queue in front of the engine: one request at a time, in the order of arrival.

Everything that ends a request comes through here, so that the engine's place is free exactly when the engine says so.
While one engine takes over from another, each has its own place (lane.py), and what is new goes to the new one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque

from cosyvoice_worker.channel import Audio, Beat, Done, Failed
from cosyvoice_worker.metrics import Metrics
from cosyvoice_worker.server import problems
from cosyvoice_worker.server.engine_rules import retry_after
from cosyvoice_worker.server.job import Job
from cosyvoice_worker.server.lane import Lane
from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.server.problems import Problem
from cosyvoice_worker.server.speech_request import SpeechRequest

_SMOOTHING = 0.2


class Dispatcher:
    """Runs on one event loop, whose clock it uses."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits = limits
        self.metrics = metrics
        self._ids = itertools.count(1)
        self._waiting: deque[Job] = deque()
        self._lane: Lane | None = None
        self._lanes: list[Lane] = []
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._seconds_each = 1.0
        metrics.queue_limit.set(limits.queued_requests)

    @property
    def queued(self) -> int:
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        return sum(lane.job is not None for lane in self._lanes)

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
        if job in self._waiting:
            self._waiting.remove(job)
        for lane in self._lanes:
            if lane.job is job:
                lane.cancel()
        self._finish(job, problem)
        if job.on_cut is not None:
            job.on_cut()
        self._tell_depth()

    def attach(self, lane: Lane) -> None:
        """An engine is ready: what waits and what comes goes to `lane`. The one before keeps the request it has."""
        self._lane = lane
        self._lanes.append(lane)
        self._start_next()

    def detach(self, lane: Lane, problem: Problem) -> None:
        """The engine of `lane` is gone, and `problem` is the end of the request that it had."""
        self._lanes = [other for other in self._lanes if other is not lane]
        if lane is self._lane:
            self._lane = None
        if lane.job is not None:
            self._finish(lane.job, problem)
            lane.end()
        self._tell_depth()

    def end(self, problem: Problem) -> None:
        """End every request; there will be no engine any more."""
        for lane in self._lanes:
            self.detach(lane, problem)
        self.end_waiting(problem)

    def end_waiting(self, problem: Problem) -> None:
        """End every request that waits."""
        while self._waiting:
            self._finish(self._waiting.popleft(), problem)
        self._tell_depth()

    def receive(self, lane: Lane, message: Audio | Done | Failed | Beat) -> None:
        """A message of `lane`'s engine about a request. One about a request it no longer has is late, not wrong."""
        job = lane.job
        if job is None or message.id != job.id:
            return
        now = asyncio.get_running_loop().time()
        if isinstance(message, Beat):
            lane.step(message.step, now)
            return
        lane.moved_at = now
        if isinstance(message, Audio):
            job.push(message.s16, now)
            if job.request.stream and job.buffered > self.limits.buffered_bytes:
                detail = f"the client left {job.buffered:,} bytes of audio unread, over {self.limits.buffered_bytes:,}"
                self.cancel(job, problems.client_too_slow(detail))
            return
        self._finish(job, _end_of(job, message))
        self._seconds_each += _SMOOTHING * (now - lane.started_at - self._seconds_each)
        lane.end()
        self._start_next()

    def _start_next(self) -> None:
        if self._lane is not None and self._lane.job is None and self._waiting:
            job = self._waiting.popleft()
            now = asyncio.get_running_loop().time()
            self.metrics.queue_wait_seconds.observe(now - job.arrived)
            self._lane.begin(job, now)
        self._tell_depth()

    def _finish(self, job: Job, end: Done | Problem) -> None:
        if (timer := self._timers.pop(job.id, None)) is not None:
            timer.cancel()
        if job.end is None:
            job.ended_at = asyncio.get_running_loop().time()
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

"""What is told of one speech request when it is over: one log line and the metrics. The text itself is never told."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from cosyvoice_worker.channel import Done
from cosyvoice_worker.metrics import Metrics
from cosyvoice_worker.server.job import Job

OK = "ok"

log = logging.getLogger(__name__)


class Tracer(Protocol):
    """`speech_trace.SpeechTracer`, which is imported only where the environment asks for traces."""

    def tell(self, told: SpeechLog, ended: float, traceparent: str | None) -> str:
        """Tell of a request that is over; the id of its trace."""


class SpeechLog:
    """Filled in while the request is handled, written once. `outcome` is "ok" or the kind of a problem.

    `traceparent` is the client's header, for `tracer`, where there is one.
    """

    def __init__(
        self,
        request_id: str,
        arrived: float,
        metrics: Metrics,
        tracer: Tracer | None = None,
        traceparent: str | None = None,
    ) -> None:
        self.request_id = request_id
        self.arrived = arrived
        self.outcome = OK
        self.detail = ""
        self.job: Job | None = None
        self._metrics = metrics
        self._tracer = tracer
        self._traceparent = traceparent

    def write(self) -> None:
        """Count and log."""
        ended = asyncio.get_running_loop().time()
        seconds = ended - self.arrived
        self._metrics.requests.labels(outcome=self.outcome).inc()
        self._metrics.request_seconds.labels(outcome=self.outcome).observe(seconds)
        fields: dict[str, object] = {"request_id": self.request_id, "outcome": self.outcome}
        fields["seconds"] = round(seconds, 3)
        if self.detail:
            fields["detail"] = self.detail
        if self.job is not None:
            fields |= self._tell_job(self.job)
        if self._tracer is not None:
            fields["trace_id"] = self._tracer.tell(self, ended, self._traceparent)
        log.info("speech", extra=fields)

    def _tell_job(self, job: Job) -> dict[str, object]:
        audio = job.audio_seconds
        fields: dict[str, object] = {
            "characters": len(job.request.input),
            "voice": job.request.voice,
            "stream": job.request.stream,
            "seed": job.seed,
            "audio_seconds": round(audio, 3),
        }
        if job.speaker is not None:
            fields["version"] = job.speaker.version
        self._metrics.audio_seconds.inc(audio)
        if job.first_audio_at is not None:
            first = job.first_audio_at - job.arrived
            fields["first_audio_seconds"] = round(first, 3)
            mode = "stream" if job.request.stream else "whole"
            self._metrics.first_audio_seconds.labels(mode=mode).observe(first)
        if isinstance(job.end, Done) and audio > 0:
            fields["real_time_factor"] = round(job.end.seconds / audio, 3)
            self._metrics.real_time_factor.observe(job.end.seconds / audio)
        return fields

"""What is told of one speech request when it is over: one log line and the metrics. The text itself is never told."""

from __future__ import annotations

import asyncio
import logging

from cosyvoice_worker.channel import Done
from cosyvoice_worker.metrics import Metrics
from cosyvoice_worker.server.job import Job

OK = "ok"

log = logging.getLogger(__name__)


class SpeechLog:
    """Filled in while the request is handled, written once. `outcome` is "ok" or the kind of a problem."""

    def __init__(self, request_id: str, arrived: float, metrics: Metrics) -> None:
        self.arrived = arrived
        self.outcome = OK
        self.detail = ""
        self.job: Job | None = None
        self._request_id = request_id
        self._metrics = metrics

    def write(self) -> None:
        """Count and log."""
        seconds = asyncio.get_running_loop().time() - self.arrived
        self._metrics.requests.labels(outcome=self.outcome).inc()
        self._metrics.request_seconds.labels(outcome=self.outcome).observe(seconds)
        fields: dict[str, object] = {"request_id": self._request_id, "outcome": self.outcome}
        fields["seconds"] = round(seconds, 3)
        if self.detail:
            fields["detail"] = self.detail
        if self.job is not None:
            fields |= self._tell_job(self.job)
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

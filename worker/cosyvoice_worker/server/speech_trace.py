"""A speech request as a trace: the whole of it, its wait for the engine, its synthesis with the first audio in it.

It is made when the request is over, from the times that were kept of it anyway.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from cosyvoice_worker.metrics import FAULTS
from cosyvoice_worker.server.job import Job
from cosyvoice_worker.server.speech_log import SpeechLog
from cosyvoice_worker.tracing.context import context_of, new_span_id
from cosyvoice_worker.tracing.span import Kind, Span, Value

ROUTE = "/v1/audio/speech"


class SpeechTracer:
    """Made on the event loop whose times it is given. `export` takes finished spans."""

    def __init__(self, export: Callable[[Iterable[Span]], None]) -> None:
        self._export = export

    def tell(self, told: SpeechLog, ended: float, traceparent: str | None) -> str:
        """Send the trace of a request that ended at a time of the event loop; the id of its trace."""
        context = context_of(traceparent)
        if context.sampled:
            # The event loop's clock knows no date.
            epoch = time.time() - asyncio.get_running_loop().time()
            whole = Span(
                name=f"POST {ROUTE}",
                trace=context.trace,
                id=new_span_id(),
                parent=context.parent,
                start=epoch + told.arrived,
                end=epoch + ended,
                kind=Kind.SERVER,
                attributes=_attributes(told),
                error=(told.detail or told.outcome) if told.outcome in FAULTS else None,
            )
            parts = () if told.job is None else _parts(told.job, whole, epoch)
            self._export((whole, *parts))
        return context.trace


def _attributes(told: SpeechLog) -> dict[str, Value]:
    attributes: dict[str, Value] = {
        "http.request.method": "POST",
        "http.route": ROUTE,
        "cosyvoice.request_id": told.request_id,
        "cosyvoice.outcome": told.outcome,
    }
    if (job := told.job) is not None:
        attributes |= {
            "cosyvoice.characters": len(job.request.input),
            "cosyvoice.stream": job.request.stream,
            "cosyvoice.audio_seconds": round(job.audio_seconds, 3),
        }
        if job.request.voice is not None:
            attributes["cosyvoice.voice"] = job.request.voice
        if job.speaker is not None and job.speaker.version is not None:
            attributes["cosyvoice.version"] = job.speaker.version
    return attributes


def _parts(job: Job, whole: Span, epoch: float) -> tuple[Span, ...]:
    """The wait, and the synthesis where the wait came to an end."""
    ended = whole.end if job.ended_at is None else epoch + job.ended_at
    started = None if job.started_at is None else epoch + job.started_at
    queue = _part("queue", whole, whole.start, ended if started is None else started)
    if started is None:
        return (queue,)
    first = () if job.first_audio_at is None else (("first audio", epoch + job.first_audio_at),)
    return queue, _part("synthesis", whole, started, ended, first)


def _part(name: str, whole: Span, start: float, end: float, events: tuple[tuple[str, float], ...] = ()) -> Span:
    return Span(name=name, trace=whole.trace, id=new_span_id(), parent=whole.id, start=start, end=end, events=events)

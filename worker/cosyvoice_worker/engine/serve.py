"""Serving: one request after the other becomes audio pieces and one last message."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

from cosyvoice_worker.channel import Audio, Done, EngineMessage, Failed
from cosyvoice_worker.engine.choice import choose_voice
from cosyvoice_worker.engine.errors import RequestError
from cosyvoice_worker.engine.job import CancelledError, DeadlinePassedError, Job
from cosyvoice_worker.engine.link import Inbox
from cosyvoice_worker.engine.load import Engine
from cosyvoice_worker.engine.pcm import to_s16
from cosyvoice_worker.engine.refusals import is_out_of_memory, release
from cosyvoice_worker.engine.synthesis import SynthesisResult
from cosyvoice_worker.engine.utterance import SpeechRequest
from cosyvoice_worker.outcome import Reason, WorkerError
from cosyvoice_worker.voices.errors import UnknownVoiceError

MAX_PIECE_BYTES = 64_000

# Reasons that only a request has.
DEADLINE_PASSED = "DeadlinePassed"
INTERNAL_ERROR = "InternalError"

log = logging.getLogger(__name__)

Send = Callable[[EngineMessage], None]


def serve(engine: Engine, inbox: Inbox, send: Send) -> NoReturn:
    """Work on requests until the front ends this process."""
    while True:
        job = inbox.next()
        message = answer(engine, job, send)
        inbox.close(job)
        send(message)


def answer(engine: Engine, job: Job, send: Send) -> Done | Failed:
    """Speak the request: sends its audio, gives back its last message. Nothing a request does ends the engine."""
    try:
        result = _speak(engine, job, send)
    except CancelledError:
        return _done(job, None)
    except DeadlinePassedError as error:
        return Failed(id=job.id, reason=DEADLINE_PASSED, message=str(error), status=504)
    except WorkerError as error:
        return _failed(job, error)
    except Exception as error:
        if is_out_of_memory(error):
            release()
            message = f"there is not enough memory for this request: {error}"
            return Failed(id=job.id, reason=Reason.OUT_OF_MEMORY.value, message=message, status=503)
        log.exception("a request failed", extra={"request": job.id})
        message = f"the model failed with {type(error).__name__}: {error}"
        return Failed(id=job.id, reason=INTERNAL_ERROR, message=message, status=500)
    return _done(job, result)


def _speak(engine: Engine, job: Job, send: Send) -> SynthesisResult:
    job.step()  # it may have been cancelled, or come too late, while it waited
    wanted = job.request
    request = SpeechRequest(
        text=wanted.text,
        voice=choose_voice(wanted.voice, engine.voices),
        stream=wanted.stream,
        seed=wanted.seed,
        speed=wanted.speed,
        instructions=wanted.instructions,
    )
    synthesis = engine.synthesizer.synthesize(request, job.step)
    seq = 0
    for samples in synthesis:
        for piece in _pieces(to_s16(samples)):
            send(Audio(id=job.id, seq=seq, s16=piece))
            seq += 1
    return synthesis.result


def _pieces(s16: bytes) -> Iterator[bytes]:
    """Whole samples, so much that the front can begin to pass them on while the rest is on its way."""
    for start in range(0, len(s16), MAX_PIECE_BYTES):
        yield s16[start : start + MAX_PIECE_BYTES]


def _done(job: Job, result: SynthesisResult | None) -> Done:
    """The end of a request that was spoken, or (None) cancelled."""
    return Done(
        id=job.id,
        speech_tokens=0 if result is None else result.speech_tokens,
        speech_tokens_sha256="" if result is None else result.speech_tokens_sha256,
        seconds=time.monotonic() - job.received,
        cancelled=result is None,
    )


def _failed(job: Job, error: WorkerError) -> Failed:
    """400 and 404 are the client's to mend, 500 is not: a broken pack, a model that gives no numbers."""
    status = 404 if isinstance(error, UnknownVoiceError) else 400 if isinstance(error, RequestError) else 500
    outcome = error.outcome
    return Failed(
        id=job.id,
        reason=outcome.reason.value,
        message=outcome.message,
        file=outcome.file,
        tensor=outcome.tensor,
        expected=outcome.expected,
        actual=outcome.actual,
        status=status,
    )

"""`POST /v1/audio/speech`, from the body's first byte to the last one of the audio."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from cosyvoice_worker.names import HEADER_TRACEPARENT
from cosyvoice_worker.server import problems
from cosyvoice_worker.server.body import Held, read_body
from cosyvoice_worker.server.context import REQUEST_ID
from cosyvoice_worker.server.dispatcher import Dispatcher
from cosyvoice_worker.server.job import Job
from cosyvoice_worker.server.problems import Problem
from cosyvoice_worker.server.speech_log import SpeechLog, Tracer
from cosyvoice_worker.server.speech_request import SpeechRequest, parse_speech
from cosyvoice_worker.server.speech_response import SpeechResponse
from cosyvoice_worker.server.state import FrontState
from cosyvoice_worker.server.voices import Voices

NOT_READY_RETRY_SECONDS = 5
# Any JSON reader keeps integers of this size exact.
SEED_BITS = 53

log = logging.getLogger(__name__)


class Speech:
    """The endpoint. `want_engine` is called when a request needs an engine that is not there; it tells the seconds
    that loading may take.
    """

    def __init__(
        self,
        state: FrontState,
        dispatcher: Dispatcher,
        voices: Voices,
        want_engine: Callable[[], float],
        tracer: Tracer | None = None,
    ) -> None:
        self.active = 0
        self._bodies = Held()
        self._state = state
        self._dispatcher = dispatcher
        self._voices = voices
        self._want_engine = want_engine
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        arrived = asyncio.get_running_loop().time()
        parent = Headers(scope=scope).get(HEADER_TRACEPARENT)
        told = SpeechLog(scope["state"][REQUEST_ID], arrived, self._dispatcher.metrics, self._tracer, parent)
        self.active += 1
        try:
            await self._answer(scope, receive, send, told)
        except Problem as problem:
            told.outcome = problem.kind
            raise
        except (ClientDisconnect, asyncio.CancelledError):
            told.outcome = "client-gone"
            raise
        except Exception:
            told.outcome = "internal-error"
            raise
        finally:
            self.active -= 1
            told.write()

    async def _answer(self, scope: Scope, receive: Receive, send: Send, told: SpeechLog) -> None:
        limits = self._dispatcher.limits
        request = parse_speech(await read_body(Headers(scope=scope), receive, limits, self._bodies), limits)
        await self._check_voice(request)
        if not self._state.serving:
            raise problems.not_ready(self._state.phase, NOT_READY_RETRY_SECONDS)
        told.job = job = self._submit(request, told.arrived)
        response = SpeechResponse(job, send, scope["state"].get("abort"), limits.stalled_seconds)
        watching = asyncio.create_task(self._watch(receive, job, response))
        try:
            await response.write()
        except Problem as problem:
            # An unfinished response that simply ends is closed by the server without the last chunk.
            told.outcome, told.detail = problem.kind, problem.detail
            if not response.started and not response.gone:
                raise
        finally:
            watching.cancel()
            self._dispatcher.cancel(job, problems.client_gone())

    async def _check_voice(self, request: SpeechRequest) -> None:
        if request.voice is not None:
            names = await self._voices.names()
            if request.voice not in names:
                raise problems.unknown_voice(request.voice, names)

    def _submit(self, request: SpeechRequest, arrived: float) -> Job:
        seconds = self._dispatcher.limits.request_seconds
        if not self._state.engine_ready:
            # Only without preload: the first requests also wait for the load.
            seconds += self._want_engine()
        seed = secrets.randbits(SEED_BITS) if request.seed is None else request.seed
        return self._dispatcher.submit(request, seed, arrived, seconds)

    async def _watch(self, receive: Receive, job: Job, response: SpeechResponse) -> None:
        """Free the engine as soon as the client has gone."""
        while (await receive())["type"] != "http.disconnect":
            pass
        response.gone = True
        self._dispatcher.cancel(job, problems.client_gone())

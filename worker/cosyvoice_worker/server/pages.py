"""Everything that is answered by `GET` from what the front knows: probes, status, metrics, models, voices."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cosyvoice_worker import metrics
from cosyvoice_worker.cgroup.high import MemoryHigh
from cosyvoice_worker.server.dispatcher import Dispatcher
from cosyvoice_worker.server.state import FrontState
from cosyvoice_worker.server.voices import Voices
from cosyvoice_worker.voices.registry import ListedVoice

HEALTH_RETRY_SECONDS = "1"

Page = Callable[[Request], Awaitable[Response]]


class Pages:
    """The pages of both ports."""

    def __init__(
        self,
        state: FrontState,
        dispatcher: Dispatcher,
        voices: Voices,
        memory_high: Callable[[], MemoryHigh | None],
    ) -> None:
        self._state = state
        self._dispatcher = dispatcher
        self._voices = voices
        self._memory_high = memory_high
        self._started = int(time.time())

    def probe_routes(self) -> list[Route]:
        return [_get("/ping", self.ping), _get("/health", self.health)]

    def admin_routes(self) -> list[Route]:
        return [*self.probe_routes(), _get("/status", self.status), _get("/metrics", self.metrics)]

    def api_routes(self) -> list[Route]:
        return [*self.probe_routes(), _get("/v1/models", self.models), _get("/v1/audio/voices", self.voices)]

    async def ping(self, _request: Request) -> Response:
        """Liveness: this loop runs, nothing else."""
        return Response(b"pong\n", media_type="text/plain")

    async def health(self, _request: Request) -> Response:
        """Readiness."""
        if self._state.ready:
            return _json(self._state.health())
        return _json(self._state.health(), 503, {"retry-after": HEALTH_RETRY_SECONDS})

    async def status(self, _request: Request) -> Response:
        """What the operator reads."""
        told = self._memory_high()
        status = self._state.status(self._dispatcher.in_flight, self._dispatcher.queued)
        return _json({**status, "memoryHigh": None if told is None else told.document()})

    async def metrics(self, _request: Request) -> Response:
        """What Prometheus reads."""
        state, told = self._state, self._dispatcher.metrics
        told.ready.set(state.ready)
        told.tell_identity(
            {
                "version": state.identity.version,
                "revision": state.identity.revision,
                "digest": state.identity.digest,
                "device": state.device,
                "dtype": state.dtype,
            }
        )
        return Response(told.render(), media_type=metrics.CONTENT_TYPE)

    async def models(self, _request: Request) -> Response:
        """The one model, in OpenAI's form."""
        model = {
            "id": self._state.identity.model,
            "object": "model",
            "created": self._started,
            "owned_by": "cosyvoice",
        }
        return _json({"object": "list", "data": [model]})

    async def voices(self, _request: Request) -> Response:
        """The voices that can be asked for, and those that cannot be used and why."""
        voices = await self._voices.listed()
        return _json(
            {
                "voices": [_usable(voice) for voice in voices if voice.broken is None],
                "broken": [{"id": voice.name, "reason": voice.broken} for voice in voices if voice.broken is not None],
            }
        )


def _usable(voice: ListedVoice) -> dict[str, object]:
    return {
        "id": voice.name,
        "name": voice.name,
        "prompt_seconds": round(voice.seconds, 2),
        "prompt_text": voice.prompt_text,
    }


def _json(document: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(document), status, {"cache-control": "no-store", **(headers or {})}, "application/json"
    )


def _get(path: str, page: Page) -> Route:
    return Route(path, page, methods=["GET"])

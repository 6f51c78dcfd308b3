"""Who may use the API: `Authorization: Bearer KEY` on everything but the probes and the description."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from cosyvoice_worker.metrics import Metrics
from cosyvoice_worker.server import problems
from cosyvoice_worker.server.api_keys import ApiKeys
from cosyvoice_worker.server.context import STRANGER
from cosyvoice_worker.server.errors import problem_response
from cosyvoice_worker.server.problems import Problem

# Probes have no keys, and a browser that opens the description sends none. Nothing of the model is told there, its
# version least of all.
OPEN_PATHS = frozenset({"/ping", "/health", "/docs", "/openapi.json"})


class Guard:
    """ASGI middleware: whoever has none of the `keys` gets no further, and not a byte of his body is read."""

    def __init__(self, app: ASGIApp, keys: ApiKeys, metrics: Metrics) -> None:
        self._app = app
        self._keys = keys
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["path"] in OPEN_PATHS
        problem = None if is_open else await self._objection(Headers(scope=scope))
        if is_open or problem is not None:
            scope["state"][STRANGER] = True
        if problem is None:
            await self._app(scope, receive, send)
        else:
            self._metrics.requests.labels(outcome=problem.kind).inc()
            await problem_response(problem, Request(scope))(scope, receive, send)

    async def _objection(self, headers: Headers) -> Problem | None:
        ring = await self._keys.current()
        if not ring.digests:
            return problems.no_api_keys()
        sent = headers.getlist("authorization")
        key = _bearer(sent[0]) if len(sent) == 1 else None
        if key is not None and ring.opens(key):
            return None
        return problems.unauthorized(sent=bool(sent))


def _bearer(header: str) -> bytes | None:
    """The key in the header; None where it is of another scheme."""
    scheme, _, key = header.partition(" ")
    return key.strip().encode("latin-1") if scheme.lower() == "bearer" else None

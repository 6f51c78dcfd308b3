"""Around every request: its id, the headers of its response, and the end of keep-alive while draining."""

from __future__ import annotations

import re
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cosyvoice_worker.names import HEADER_REQUEST_ID, HEADER_VERSION
from cosyvoice_worker.server.state import FrontState

REQUEST_ID = "request_id"
# Set where the client has not shown an API key that is wanted: he is told nothing of the model.
STRANGER = "stranger"

# What a client may choose: it goes into logs and headers.
_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


class RequestContext:
    """ASGI middleware. The id is in `scope["state"]["request_id"]`."""

    def __init__(self, app: ASGIApp, state: FrontState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = _request_id(Headers(scope=scope).get(HEADER_REQUEST_ID, ""))
        scope.setdefault("state", {})[REQUEST_ID] = request_id

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers[HEADER_REQUEST_ID] = request_id
                if self._state.identity.version is not None and STRANGER not in scope["state"]:
                    # Speech has it already: another version may have taken over since it was spoken.
                    headers.setdefault(HEADER_VERSION, self._state.identity.version)
                if self._state.draining:
                    headers["connection"] = "close"
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _request_id(sent: str) -> str:
    return sent if _ID.fullmatch(sent) else uuid.uuid4().hex

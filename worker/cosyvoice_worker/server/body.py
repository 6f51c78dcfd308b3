"""Reading a request's body: never more than the limit, never longer than the patience."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cosyvoice_worker.server import problems
from cosyvoice_worker.server.limits import MIB, Limits

LINGER_SECONDS = 2.0
LINGER_BYTES = 16 * MIB


@dataclass(slots=True)
class Held:
    """What the bodies hold together that are being read, in bytes."""

    bytes: int = 0


async def read_body(headers: Headers, receive: Receive, limits: Limits, held: Held) -> bytes:
    """The whole body, as it was sent: a coded one could unpack to any size.

    Raises Problem (coded, too large, too slow, too much beside what `held` counts), or ClientDisconnect when the client
    has gone.
    """
    coding = ", ".join(headers.getlist("content-encoding")).strip().lower()
    if coding not in ("", "identity"):
        raise problems.coded_body(coding)
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.body_bytes:
        raise problems.body_too_large(limits.body_bytes)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                part = message.get("body", b"")
                body += part
                held.bytes += len(part)
                if len(body) > limits.body_bytes:
                    raise problems.body_too_large(limits.body_bytes)
                if held.bytes > limits.bodies_bytes:
                    raise problems.too_many_bodies(limits.bodies_bytes)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError as error:
        raise problems.body_timeout(limits.body_seconds) from error
    finally:
        held.bytes -= len(body)


class LingeringResponse(Response):
    """A response to a request whose body has not been read: it throws some of the body away before it ends.

    Closing a connection with bytes in it resets it, and the client may then never see the answer. A client that waits
    for `100 Continue` sends nothing, and nothing is waited for.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers["connection"] = "close"
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        if "expect" not in Headers(scope=scope):
            await _discard(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _discard(receive: Receive) -> None:
    discarded = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while discarded < LINGER_BYTES:
                message = await receive()
                discarded += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return

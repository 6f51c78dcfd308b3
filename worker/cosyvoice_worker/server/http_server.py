"""uvicorn, with what it lacks here: a time limit on request heads, dropping a connection, and no signals of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from cosyvoice_worker.server.limits import Limits

# Responses get this long to leave the process once nothing new is served.
FLUSH_SECONDS = 3

# What uvicorn says of a response that was cut on purpose, for a reason that has been logged.
_CUT = "ASGI callable returned without completing response."


class FrontServer(uvicorn.Server):
    """A server whose end is decided by the front, not by signals: uvicorn would end the process by the signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def finish(self, *, now: bool) -> None:
        """Accept nothing more and return from `serve` when what was answered has been sent; `now` waits for nothing."""
        self.should_exit = True
        self.force_exit = now


def make_server(app: ASGIApp, limits: Limits) -> FrontServer:
    """The server for `app`; `serve(sockets=…)` runs it."""
    quiet = logging.getLogger("uvicorn")
    quiet.setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(lambda record: record.getMessage() != _CUT)
    return FrontServer(
        uvicorn.Config(
            app,
            loop="asyncio",
            http=_guarded_protocol(limits.head_seconds),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=limits.keep_alive_seconds,
            timeout_graceful_shutdown=FLUSH_SECONDS,
        )
    )


def _guarded_protocol(head_seconds: float) -> type[H11Protocol]:
    class GuardedProtocol(H11Protocol):
        """A connection that has to send each request's head, and a body that nobody reads, in time once it has begun.

        `scope["state"]["abort"]` drops the connection with all that is unsent.
        """

        _head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:  # uvicorn's own signature narrows asyncio's
            super().connection_made(transport)
            self.app_state = {**self.app_state, "abort": transport.abort}
            self._watch_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_watching()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            # Our side is done while theirs is not: a body that nobody reads still arrives, and may do so for ever.
            awaited = self.conn.their_state is h11.IDLE or self.conn.our_state is h11.DONE
            if awaited and not self.transport.is_closing():
                self._watch_head()
            else:
                self._stop_watching()

        def _watch_head(self) -> None:
            if self._head_timer is None:
                self._head_timer = self.loop.call_later(head_seconds, self.transport.abort)

        def _stop_watching(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

    return GuardedProtocol

"""uvicorn, with what it lacks here: limits on how many connections there are and how long one may do nothing, dropping
a connection, and no signals of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
from collections.abc import Iterator
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.server.listening import BACKLOG

# Responses get this long to leave the process once nothing new is served.
FLUSH_SECONDS = 3

DESCRIPTORS = 4096

# What uvicorn says of a response that was cut on purpose, for a reason that has been logged; and of what any client can
# send as often as he likes.
_NOT_TOLD = (
    "ASGI callable returned without completing response.",
    "Invalid HTTP request received.",
    "Unsupported upgrade request.",
    "No supported WebSocket library detected.",
)


class FrontServer(uvicorn.Server):
    """A server whose end is decided by the front, not by signals: uvicorn would end the process by the signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def finish(self, *, now: bool) -> None:
        """Accept nothing more and return from `serve` when what was answered has been sent; `now` waits for nothing."""
        self.should_exit = True
        self.force_exit = now


def make_server(app: ASGIApp, limits: Limits, admin_port: int) -> FrontServer:
    """The server for `app`; `serve(sockets=…)` runs it. What comes in on `admin_port` does not count as connections."""
    quiet = logging.getLogger("uvicorn")
    quiet.setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(lambda record: not record.getMessage().startswith(_NOT_TOLD))
    return FrontServer(
        uvicorn.Config(
            app,
            loop="asyncio",
            http=_guarded_protocol(limits, admin_port),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,  # so many are accepted at a time before the first of them can be dropped
            timeout_keep_alive=limits.keep_alive_seconds,
            timeout_graceful_shutdown=FLUSH_SECONDS,
        )
    )


def allow_descriptors() -> None:
    """Let this process open as many files as connections need, where it is given fewer than it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections(limits: Limits) -> int:
    """How many clients' connections there may be: half of the descriptors are left for everything else."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limits.connections if descriptors == resource.RLIM_INFINITY else min(limits.connections, descriptors // 2)


def _guarded_protocol(limits: Limits, admin_port: int) -> type[H11Protocol]:
    clients: set[H11Protocol] = set()
    most = most_connections(limits)

    class GuardedProtocol(H11Protocol):
        """A connection that has to send each request's head, and a body that nobody reads, in time once it has begun,
        and to take what is sent to it. One too many is dropped: the probes come in over connections too.

        `scope["state"]["abort"]` drops the connection with all that is unsent.
        """

        _head_timer: asyncio.TimerHandle | None = None
        _unsent_timer: asyncio.TimerHandle | None = None
        _emptied = 0  # how often what waits to be sent has become little enough to go on

        def connection_made(self, transport: Any) -> None:  # uvicorn's own signature narrows asyncio's
            super().connection_made(transport)
            self.app_state = {**self.app_state, "abort": transport.abort}
            if self.server is None or self.server[1] != admin_port:
                clients.add(self)
            if len(clients) > most and self in clients:
                transport.abort()
                return
            self._watch_head()
            self._watch_unsent((0, 0))

        def connection_lost(self, exc: Exception | None) -> None:
            clients.discard(self)
            self._stop_watching()
            if self._unsent_timer is not None:
                self._unsent_timer.cancel()
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
                self._head_timer = self.loop.call_later(limits.head_seconds, self.transport.abort)

        def _stop_watching(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

        def resume_writing(self) -> None:
            self._emptied += 1
            super().resume_writing()

        def _watch_unsent(self, before: tuple[int, int]) -> None:
            """Drop it where the same bytes wait to be sent as a while ago: closing it would wait for them for ever."""
            now = (self.transport.get_write_buffer_size(), self._emptied)
            if now[0] and now == before:
                self.transport.abort()
            else:
                self._unsent_timer = self.loop.call_later(limits.unread_seconds, self._watch_unsent, now)

    return GuardedProtocol

"""Answers on both ports from a thread while the HTTP server is being imported.

A pod's probes must be answered within milliseconds of its start, the HTTP server's modules take hundreds. So this file
imports only what is compiled into the interpreter, and hands the same listening sockets over: nobody is refused.
"""

from __future__ import annotations

import _socket
import _thread
import os
import select
from time import monotonic

from cosyvoice_worker.server.early_pages import Page, answer

MAX_HEAD_BYTES = 16 * 1024
SECONDS_PER_CONNECTION = 2.0


class _Connection:
    """One client: its head is read, answered, and the rest thrown away until it hangs up or its time is over.

    Closing with unread bytes would reset the connection and might take the answer with it.
    """

    def __init__(self, fd: int, pages: dict[bytes, Page]) -> None:
        self.sock = _socket.socket(fileno=fd)
        self.sock.setblocking(False)
        self.pages = pages
        self.head = b""
        self.answered = False
        self.deadline = monotonic() + SECONDS_PER_CONNECTION

    def advance(self) -> bool:
        """Read what is there. False when the connection is finished."""
        try:
            data = self.sock.recv(MAX_HEAD_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if self.answered:
            return bool(data)
        self.head += data
        if data and b"\r\n\r\n" not in self.head and len(self.head) < MAX_HEAD_BYTES:
            return True
        if not self.head:
            return False
        self.answered = True
        try:
            self.sock.send(answer(self.head, self.pages))
            self.sock.shutdown(_socket.SHUT_WR)
        except OSError:
            return False
        return bool(data)


class EarlyListener:
    """`start()`, and `stop()` when somebody else is about to accept on the same sockets."""

    def __init__(self, listeners: dict[_socket.socket, dict[bytes, Page]]) -> None:
        self._pages = {listener.fileno(): (listener, pages) for listener, pages in listeners.items()}
        self._wake_read, self._wake_write = os.pipe()
        self._accepting = _thread.allocate_lock()

    def start(self) -> None:
        """Begin to answer."""
        self._accepting.acquire()
        _thread.start_new_thread(self._serve, ())

    def stop(self) -> None:
        """Return when no further connection will be accepted; those that are open are still answered."""
        os.write(self._wake_write, b"x")
        self._accepting.acquire()
        os.close(self._wake_write)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        for fd in self._pages:
            poll.register(fd, select.POLLIN)
        connections: dict[int, _Connection] = {}
        accepting = True
        while accepting or connections:
            for fd, _ in poll.poll(_milliseconds_until(connections)):
                if fd == self._wake_read:
                    accepting = False
                    for listener in (self._wake_read, *self._pages):
                        poll.unregister(listener)
                    self._accepting.release()
                elif fd in connections:
                    if not connections[fd].advance():
                        _close(connections, poll, fd)
                elif accepting and fd in self._pages:
                    self._accept(fd, connections, poll)
            now = monotonic()
            for fd in [fd for fd, connection in connections.items() if connection.deadline <= now]:
                _close(connections, poll, fd)
        os.close(self._wake_read)

    def _accept(self, listener_fd: int, connections: dict[int, _Connection], poll: select.poll) -> None:
        listener, pages = self._pages[listener_fd]
        try:
            fd, _ = listener._accept()  # type: ignore[attr-defined]  # what socket.accept() itself calls
        except OSError:
            return
        connections[fd] = _Connection(fd, pages)
        poll.register(fd, select.POLLIN)


def _milliseconds_until(connections: dict[int, _Connection]) -> float | None:
    if not connections:
        return None
    earliest = min(connection.deadline for connection in connections.values())
    return max(0.0, earliest - monotonic()) * 1000


def _close(connections: dict[int, _Connection], poll: select.poll, fd: int) -> None:
    poll.unregister(fd)
    connections.pop(fd).sock.close()

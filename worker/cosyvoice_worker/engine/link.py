"""The engine's end of the channel: sending from any thread, and a thread that hears what the front wants."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import NoReturn

from cosyvoice_worker import channel
from cosyvoice_worker.engine.job import Job

CLEAN_EXIT = 0


class Link:
    """Frames over the socket that was inherited from the front."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sending = threading.Lock()

    def send(self, message: channel.EngineMessage) -> None:
        """Send `message`; waits while the front does not read. Without a front there is nothing left to do: exits."""
        frame = channel.encode(message)
        try:
            with self._sending:
                self._sock.sendall(frame)
        except OSError:
            leave()

    def receive(self) -> channel.FrontMessage | None:
        """The next message; None when the front is gone. Raises msgspec.MsgspecError for what is none."""
        head = self._read(channel.LENGTH.size)
        if head is None:
            return None
        (length,) = channel.LENGTH.unpack(head)
        if length > channel.MAX_FRAME_BYTES:
            raise ValueError(f"a frame of {length} bytes is over the limit of {channel.MAX_FRAME_BYTES}")
        body = self._read(length)
        return None if body is None else channel.decode_front(body)

    def _read(self, count: int) -> bytes | None:
        data = bytearray()
        while len(data) < count:
            try:
                piece = self._sock.recv(count - len(data))
            except OSError:
                return None
            if not piece:
                return None
            data += piece
        return bytes(data)


class Inbox:
    """The front's requests in order. Cancellation and the end of the front take effect while one is being worked on."""

    def __init__(self, link: Link, end: Callable[[], NoReturn]) -> None:
        """`end` is called on the reading thread when the front is gone or says so; it does not return.

        `on_bound`, set by who loads, is called there when the memory that this engine may take changes.
        """
        self.on_bound: Callable[[int | None], None] | None = None
        self._link = link
        self._end = end
        self._waiting: SimpleQueue[Job] = SimpleQueue()
        self._open: dict[int, Job] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._listen, name="inbox", daemon=True).start()

    def next(self) -> Job:
        """Wait for the next request."""
        return self._waiting.get()

    def close(self, job: Job) -> None:
        """`job` has had its last message: nothing can cancel it any more."""
        with self._lock:
            del self._open[job.id]

    def _listen(self) -> None:
        while True:
            match self._link.receive():
                case channel.Synthesize() as request:
                    job = Job(request, self._link.send)
                    with self._lock:
                        self._open[job.id] = job
                    self._waiting.put(job)
                case channel.Cancel(id=number):
                    with self._lock:
                        if number in self._open:
                            self._open[number].cancel()
                case channel.Bound(growth=growth):
                    if self.on_bound is not None:
                        self.on_bound(growth)
                case channel.Shutdown() | None:
                    self._end()


def leave(code: int = CLEAN_EXIT) -> NoReturn:
    """End at once: nobody hears any more, and tearing PyTorch down takes time and can change the exit code."""
    sys.stderr.flush()
    os._exit(code)

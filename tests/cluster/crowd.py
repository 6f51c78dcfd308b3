"""Clients of every kind at once, good and bad, and what statuses they were answered with."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

PORT = 80
SECONDS = 60.0
# Answers to a right request: served, or told to come again.
RIGHT = frozenset({"200", "429 Retry-After", "503 Retry-After"})
DICE = random.SystemRandom()
# A pod that is killed takes its connections along: the client sees that, and no status.
CUT = "cut"


class Crowd:
    """Threads that call `address` until `leave`. `heard` counts what each kind of client was answered."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.heard: dict[str, Counter[str]] = {}
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._come_again, args=(kind,), name=kind.__name__)
            for kind in (self.speaks, self.speaks, self.listens_to_a_stream, self.leaves, self.says_nothing,
                         self.writes_slowly, self.sends_rubbish, self.says_too_much)
        ]  # fmt: skip

    def come(self) -> None:
        for thread in self._threads:
            thread.start()

    def leave(self) -> None:
        """All of them, once they have what they asked for."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _come_again(self, kind: Callable[[], str]) -> None:
        heard = self.heard.setdefault(kind.__name__, Counter())
        while not self._over.is_set():
            try:
                answer = kind()
            except (OSError, http.client.HTTPException):
                answer = CUT
            heard[answer] += 1
            self._over.wait(DICE.uniform(0, 2))

    def speaks(self) -> str:
        return self._ask({"input": "A sentence that somebody wants to hear."})

    def listens_to_a_stream(self) -> str:
        return self._ask({"input": "One that comes as it is made.", "stream": True})

    def leaves(self) -> str:
        """In the middle of a reply."""
        with self._connection() as connection:
            connection.request("POST", "/v1/audio/speech", _body({"input": "Nobody waits for the end of this one."}))
            time.sleep(DICE.uniform(0, 1))
        return "left"

    def says_nothing(self) -> str:
        return self._ask({"input": "..."})

    def says_too_much(self) -> str:
        return self._ask({"input": "word " * 2000})

    def writes_slowly(self) -> str:
        """A body of which every byte takes its time, and most never come."""
        with socket.create_connection((self.address, PORT), timeout=SECONDS) as sock:
            sock.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: narrator\r\nContent-Length: 200\r\n\r\n")
            for byte in b'{"input": "H':
                sock.sendall(bytes([byte]))
                if self._over.wait(0.5):
                    break
        return "left"

    def sends_rubbish(self) -> str:
        with socket.create_connection((self.address, PORT), timeout=SECONDS) as sock:
            sock.sendall(DICE.randbytes(100) + b"\r\n\r\n")
            answer = sock.recv(64)
        return answer.split(b" ")[1].decode() if answer.startswith(b"HTTP/1.1 ") else CUT

    def _ask(self, request: dict[str, object]) -> str:
        with self._connection() as connection:
            connection.request("POST", "/v1/audio/speech", _body(request), {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            again = " Retry-After" if response.headers["Retry-After"] else ""
            return f"{response.status}{again}"

    @contextlib.contextmanager
    def _connection(self) -> Iterator[http.client.HTTPConnection]:
        connection = http.client.HTTPConnection(self.address, PORT, timeout=SECONDS)
        try:
            yield connection
        finally:
            connection.close()


def _body(request: dict[str, object]) -> bytes:
    return json.dumps(request).encode()

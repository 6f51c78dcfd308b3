"""A collector of traces on loopback: it keeps what it is sent."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Collector(HTTPServer):
    """Keeps what it is sent. `answers` are the status codes of the next requests, 200 when there are none."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.answers: list[int] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> dict[str, dict[str, Any]]:
        """All spans by name."""
        return {
            span["name"]: span
            for _, _, document in self.received
            for resource in document["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        }


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.server.answers.pop(0) if self.server.answers else 200
        if answer == 200:
            self.server.received.append((self.path, dict(self.headers), document))
        self.send_response(answer)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens while the context lasts."""
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()

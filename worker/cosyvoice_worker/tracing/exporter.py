"""Sends spans to a collector, many at a time, from a thread of its own: speech never waits for it."""

from __future__ import annotations

import http.client
import json
import logging
import queue
import ssl
import threading
from collections.abc import Iterable
from urllib.parse import urlsplit

from cosyvoice_worker.tracing import otlp
from cosyvoice_worker.tracing.settings import TracingSettings
from cosyvoice_worker.tracing.span import Span

QUEUED_SPANS = 2048
BATCH_SPANS = 512
BATCH_SECONDS = 1.0
TIMEOUT_SECONDS = 10.0
ANSWER_BYTES = 64 * 1024
CLOSE_SECONDS = 3.0
RETRY_SECONDS = (1.0, 2.0, 4.0)
# OTLP/HTTP, "Retryable Response Codes".
RETRYABLE = frozenset({429, 502, 503, 504})

log = logging.getLogger(__name__)


class Exporter:
    """`export` never blocks: what the collector does not take in time is dropped, and told in the log. `close` once.

    Raises OSError where the file of certificates cannot be used.
    """

    def __init__(self, settings: TracingSettings) -> None:
        self._settings = settings
        self._url = urlsplit(settings.endpoint)
        self._context = None
        if self._url.scheme == "https":
            self._context = ssl.create_default_context(cafile=settings.certificate)
        self._spans: queue.Queue[Span | None] = queue.Queue(QUEUED_SPANS)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    def export(self, spans: Iterable[Span]) -> None:
        """Send these soon."""
        try:
            for span in spans:
                self._spans.put_nowait(span)
        except queue.Full:
            log.warning("spans are dropped: the collector takes too few")

    def close(self) -> None:
        """Send what is there, if that does not take long."""
        self._closing.set()
        try:
            self._spans.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        open_ = True
        while open_:
            batch, open_ = self._next_batch()
            if batch:
                self._send(batch)

    def _next_batch(self) -> tuple[list[Span], bool]:
        """The next spans, and whether there will be more."""
        batch: list[Span] = []
        first = self._spans.get()
        if first is None:
            return batch, False
        batch.append(first)
        self._closing.wait(BATCH_SECONDS)
        while len(batch) < BATCH_SPANS:
            try:
                span = self._spans.get_nowait()
            except queue.Empty:
                break
            if span is None:
                return batch, False
            batch.append(span)
        return batch, True

    def _send(self, batch: list[Span]) -> None:
        body = json.dumps(otlp.document(self._settings.resource, batch), separators=(",", ":")).encode()
        for wait in (*RETRY_SECONDS, None):
            try:
                status = self._post(body)
            except (OSError, http.client.HTTPException) as error:
                why, again = str(error) or type(error).__name__, True
            else:
                if 200 <= status < 300:
                    return
                why, again = f"it answered {status}", status in RETRYABLE
            if not again or wait is None or self._closing.wait(wait):
                log.warning("%d spans are lost: %s: %s", len(batch), self._settings.endpoint, why)
                return

    def _post(self, body: bytes) -> int:
        """The status of the answer."""
        host, port = self._url.hostname or "", self._url.port
        if self._context is not None:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=TIMEOUT_SECONDS, context=self._context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        try:
            target = self._url.path + (f"?{self._url.query}" if self._url.query else "")
            headers = {"Content-Type": "application/json", **self._settings.headers}
            connection.request("POST", target or "/", body, headers)
            answer = connection.getresponse()
            answer.read(ANSWER_BYTES)  # so much of it as a collector has reason to say
            return answer.status
        finally:
            connection.close()

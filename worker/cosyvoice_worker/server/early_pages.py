"""What is answered while the HTTP server is being imported: the probes, and 503 to everything else."""

from __future__ import annotations

NO_STATUS = (
    b'{"schema":1,"model":null,"version":null,"revision":null,"digest":null,"phase":"Start","ready":false,'
    b'"device":null,"dtype":null,"load":{},"engine":{"pid":null,"restarts":0,"inFlight":0,"queued":0},'
    b'"staged":null,"failure":null,"swap":null}'
)
_HEALTH = b'{"phase":"Start"}'
_METRICS = b"# HELP cosyvoice_ready Whether the worker serves.\n# TYPE cosyvoice_ready gauge\ncosyvoice_ready 0.0\n"
_STARTING = (
    b'{"type":"https://cosyvoice.dev/problems/not-ready","title":"Not ready","status":503,'
    b'"detail":"the worker is not ready: it is in phase Start; try again in 1 s","phase":"Start"}'
)

PING = (b"200 OK", b"text/plain; charset=utf-8", b"pong\n")
HEALTH = (b"503 Service Unavailable", b"application/json", _HEALTH)
METRICS = (b"200 OK", b"text/plain; version=0.0.4; charset=utf-8", _METRICS)
STARTING = (b"503 Service Unavailable", b"application/problem+json", _STARTING)

Page = tuple[bytes, bytes, bytes]

API_PAGES: dict[bytes, Page] = {b"/ping": PING, b"/health": HEALTH}
ADMIN_PAGES: dict[bytes, Page] = {
    **API_PAGES,
    b"/metrics": METRICS,
    b"/status": (b"200 OK", b"application/json", NO_STATUS),
}


def answer(head: bytes, pages: dict[bytes, Page]) -> bytes:
    """The whole response to a request whose head (or what came of it) is `head`."""
    method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
    target = rest.partition(b" ")[0].partition(b"?")[0]
    status, content_type, body = pages.get(target, STARTING)
    retry = b"" if status.startswith(b"200") else b"retry-after: 1\r\n"
    head_lines = b"content-type: %b\r\ncontent-length: %d\r\ncache-control: no-store\r\n%bconnection: close\r\n"
    lines = head_lines % (content_type, len(body), retry)
    return b"HTTP/1.1 %b\r\n%b\r\n%b" % (status, lines, b"" if method == b"HEAD" else body)

"""The answers given before the HTTP server is imported, and the hand-over to it."""

from __future__ import annotations

import errno
import json
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cosyvoice_worker.server.early import EarlyListener
from cosyvoice_worker.server.early_pages import ADMIN_PAGES, API_PAGES, answer
from cosyvoice_worker.server.listening import listen


@pytest.fixture
def ports() -> Iterator[dict[str, int]]:
    api, admin = listen("127.0.0.1", 0), listen("127.0.0.1", 0)
    early = EarlyListener({api: API_PAGES, admin: ADMIN_PAGES})
    early.start()
    yield {"api": api.getsockname()[1], "admin": admin.getsockname()[1]}
    early.stop()
    api.close()
    admin.close()


def ask(port: int, request: bytes) -> tuple[int, dict[str, str], bytes]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(request)
        with client.makefile("rb") as stream:
            head, _, body = stream.read().partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    return int(lines[0].split()[1]), headers, body


@pytest.mark.parametrize(
    ("where", "path", "status", "content"),
    [
        ("api", "/ping", 200, ("text/plain; charset=utf-8", b"pong")),
        ("admin", "/ping", 200, ("text/plain; charset=utf-8", b"pong")),
        ("api", "/health", 503, ("application/json", b'{"phase":"Start"}')),
        ("admin", "/health?verbose=1", 503, ("application/json", b'{"phase":"Start"}')),
        ("admin", "/metrics", 200, ("text/plain; version=0.0.4; charset=utf-8", b"cosyvoice_ready 0.0")),
        ("admin", "/status", 200, ("application/json", b'"phase":"Start"')),
        ("api", "/status", 503, ("application/problem+json", b"not ready")),
        ("api", "/v1/audio/voices", 503, ("application/problem+json", b"not ready")),
    ],
)
def test_each_page_is_answered_on_its_port(
    ports: dict[str, int], where: str, path: str, status: int, content: tuple[str, bytes]
) -> None:
    content_type, part = content
    answered, headers, body = ask(ports[where], f"GET {path} HTTP/1.1\r\nhost: pod\r\n\r\n".encode())

    assert (answered, headers["content-type"], headers["connection"]) == (status, content_type, "close")
    assert part in body
    assert len(body) == int(headers["content-length"])
    assert headers.get("retry-after") == (None if status == 200 else "1")


def test_speech_is_refused_with_a_problem_and_its_body_does_not_reset_the_answer(ports: dict[str, int]) -> None:
    request = b"POST /v1/audio/speech HTTP/1.1\r\ncontent-length: 300000\r\n\r\n" + b"x" * 300000

    status, headers, body = ask(ports["api"], request)

    assert (status, headers["retry-after"]) == (503, "1")
    assert json.loads(body) == {
        "type": "https://cosyvoice.dev/problems/not-ready",
        "title": "Not ready",
        "status": 503,
        "detail": "the worker is not ready: it is in phase Start; try again in 1 s",
        "phase": "Start",
    }


def test_a_silent_client_does_not_keep_others_waiting(ports: dict[str, int]) -> None:
    with socket.create_connection(("127.0.0.1", ports["api"])) as silent:
        silent.sendall(b"GET /pi")

        assert ask(ports["api"], b"GET /ping HTTP/1.1\r\n\r\n")[0] == 200


def test_head_has_no_body() -> None:
    response = answer(b"HEAD /ping HTTP/1.1", API_PAGES)

    assert response.endswith(b"\r\n\r\n")
    assert b"content-length: 5\r\n" in response


def test_the_early_status_is_json_with_the_fields_of_the_contract() -> None:
    assert json.loads(ADMIN_PAGES[b"/status"][2]) == {
        "schema": 1,
        **dict.fromkeys(["model", "version", "revision", "digest", "device", "dtype", "staged", "failure", "swap"]),
        "phase": "Start",
        "ready": False,
        "load": {},
        "engine": {"pid": None, "restarts": 0, "inFlight": 0, "queued": 0},
    }


def test_after_the_hand_over_connections_wait_for_the_next_to_accept() -> None:
    listener = listen("127.0.0.1", 0)
    early = EarlyListener({listener: API_PAGES})
    early.start()
    early.stop()

    with socket.create_connection(listener.getsockname()), socket.socket(fileno=listener.detach()) as successor:
        successor.setblocking(True)
        connection, _ = successor.accept()
        connection.close()


def test_a_taken_port_is_told() -> None:
    taken = listen("127.0.0.1", 0)

    with pytest.raises(OSError, match="in use") as caught:
        listen("127.0.0.1", taken.getsockname()[1])

    assert caught.value.errno == errno.EADDRINUSE
    taken.close()


def test_both_families_are_served_where_there_is_ipv6() -> None:
    listener = listen(None, 0)
    addresses = ["127.0.0.1"] + (["::1"] if listener.family == socket.AF_INET6 else [])

    for address in addresses:
        socket.create_connection((address, listener.getsockname()[1])).close()

    listener.close()


def test_nothing_is_imported_that_is_not_built_in_or_ours() -> None:
    script = (
        "import sys; before = set(sys.modules)\n"
        "from cosyvoice_worker.server import early, listening\n"
        "print(*sorted(set(sys.modules) - before))"
    )

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    allowed = {"_socket", "_thread", "errno", "select", "time", "__future__"}
    assert [name for name in loaded if not name.startswith("cosyvoice_worker") and name not in allowed] == []

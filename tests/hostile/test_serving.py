"""Hostile clients and voice packs before a worker that serves: the status of each, the words, and the front's memory.

The worker is one for all: what one row breaks, the next ones find.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.engine.serving_worker import HOST, ServingWorker
from tests.hostile.models import nested, pack, tensor

MIB = 1024 * 1024
# With nothing to do the front has about 60 MiB. All bodies that are on their way may have 32, twice while they are put
# together, and each of a thousand connections 64 KiB that have not been read: 190, and some room.
FRONT_BYTES = 256 * MIB
SPEECH = "/v1/audio/speech"

PACKS: dict[str, tuple[bytes, str]] = {
    "header-of-2-60": (pack({}, length=2**60), "not a voice pack: expected a header of at most 65536 bytes"),
    "tensor-of-2-60": (pack({"a": tensor(0, 2**60)}), "truncated"),
    "overlapping": (pack({"a": tensor(0, 8), "b": tensor(4, 12)}, bytes(12)), "data_offsets: expected to begin at 8"),
    "keys-10-6": (pack({str(n): tensor(0, 0) for n in range(10**6)}), "too large for a voice pack: expected at most"),
    "keys-10-3": (pack({str(n): tensor(0, 0) for n in range(1000)}), "tensors: expected embedding, prompt_mel"),
    "nested": (pack(nested(20_000).encode()), "header: expected JSON, got RecursionError"),
    "one-byte": (b"\x01", "too short for a safetensors file"),
}


def post(body: bytes, *lines: str, length: int | None = None, path: str = SPEECH) -> bytes:
    """A whole request."""
    size = len(body) if length is None else length
    head = [f"POST {path} HTTP/1.1", "Host: test", f"Content-Length: {size}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def get(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: test", *lines]).encode() + b"\r\n\r\n"


def said(**fields: object) -> bytes:
    return json.dumps({"input": "Hello.", **fields}).encode()


CHUNKS = b"%x\r\n" % MIB + bytes(MIB) + b"\r\n"
REQUESTS: dict[str, tuple[bytes, int, str]] = {
    "nested without end": (post(nested(500_000).encode()), 400, "the body is not JSON: nested too deeply"),
    "60,000 keys": (post(said(**{f"k{n}": 1 for n in range(60_000)})), 400, "further unknown fields"),
    "a number of 10^6 digits": (post(b'{"input": "a", "seed": ' + b"9" * 10**6 + b"}"), 400, "not JSON: Integer"),
    "a speed of infinity": (post(b'{"input": "a", "speed": 1e999}'), 400, "not JSON: Number out of range"),
    "bytes that are no text": (post(b'{"input": "\xff"}'), 400, "the body is not UTF-8: wrong byte at position 11"),
    "half a character": (post(b'{"input": "\\ud800"}'), 400, "the body is not JSON: Input data was truncated"),
    "a text over the limit": (post(said(input="a" * 5001)), 413, "input has 5,001 characters, over the limit of 5,000"),
    "a body over the limit": (post(bytes(2 * MIB)), 413, "the body is over the limit of 1,048,576 bytes"),
    "a body of 2^60 bytes, as told": (post(b"{", length=2**60), 413, "the body is over the limit of 1,048,576 bytes"),
    "a body without end": (
        post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked") + CHUNKS * 4,
        413,
        "the body is over the limit of 1,048,576 bytes",
    ),
    "a gzip bomb": (post(gzip.compress(bytes(64 * MIB)), "Content-Encoding: gzip"), 415, "the body is coded ('gzip')"),
    "a gzip bomb in a second header": (
        post(gzip.compress(bytes(MIB)), "Content-Encoding: identity", "Content-Encoding: gzip"),
        415,
        "the body is coded ('identity, gzip')",
    ),
    "a body that hides a request": (
        post(b"0\r\n\r\n" + get("/v1/models"), "Transfer-Encoding: chunked"),
        400,
        "the length of the body is told twice",
    ),
    "a voice that is a path": (post(said(voice="../../etc/passwd")), 404, "there is no voice '../../etc/passwd'"),
    "a voice that is broken": (
        post(said(voice="overlapping")),
        404,
        "there is no voice 'overlapping'; there are: none",
    ),
    "a path up and out": (get("/docs/../../etc/passwd"), 404, "there is nothing at /docs/../../etc/passwd"),
    "a path up and out, spelled": (get("/docs/%2e%2e/%2e%2e/etc/passwd"), 404, "there is nothing at /docs/"),
    "a path that leads elsewhere": (get("/v1/models/").replace(b"test", b"evil.example"), 404, "there is nothing at"),
    "a host that is none": (get("/nothing").replace(b"test", b"["), 404, "there is nothing at /nothing"),
    "a header without end": (b"GET /ping HTTP/1.1\r\nX: " + b"a" * 65_600, 400, "Invalid HTTP request"),
    "two lengths": (post(b"{}", "Content-Length: 3"), 400, "Invalid HTTP request"),
    "a length that is none": (get("/ping", "Content-Length: -1"), 400, "Invalid HTTP request"),
}


class Connection:
    """A raw connection to the worker's API."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection((HOST, port), timeout=60)

    def answer(self) -> tuple[int, str]:
        """Status and body of one response that has a length, or of one that ends the connection."""
        with self.sock, self.sock.makefile("rb") as stream:
            head = b""
            while not head.endswith(b"\r\n\r\n") and (line := stream.readline()):
                head += line
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            body = stream.read(int(length[1])) if length else stream.read()
        return int(head.split()[1]), body.decode(errors="replace")


@pytest.fixture(scope="module")
def worker(good: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServingWorker]:
    """A worker that loads no engine before it is asked to speak, which nobody here gets it to do."""
    scratch, voices = (tmp_path_factory.mktemp(name) for name in ("scratch", "voices"))
    for name, (content, _) in PACKS.items():
        (voices / f"{name}.safetensors").write_bytes(content)
    (voices / "outside.safetensors").symlink_to("/dev/zero")
    with ServingWorker(scratch, "--model", good, "--voices", voices, "--no-preload") as worker:
        worker.until_ready()
        yield worker


@pytest.fixture(scope="module")
def slow(worker: ServingWorker) -> Connection:
    """A client whose body comes in a byte at a time, and never as a whole. It began before all others."""
    connection = Connection(worker.api_port)
    connection.sock.sendall(post(b"{", length=1000))

    def drip() -> None:
        try:
            while not ended.wait(1):
                connection.sock.sendall(b" ")
        except OSError:
            pass  # the worker has had enough

    ended = threading.Event()
    threading.Thread(target=drip, daemon=True).start()
    return connection


def peak(pid: int) -> int:
    """The most memory that a process has held, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_refused(name: str, worker: ServingWorker) -> None:
    sent, status, words = REQUESTS[name]
    connection = Connection(worker.api_port)
    connection.sock.sendall(sent)

    answered, body = connection.answer()

    assert answered == status, body
    assert words in body
    assert worker.ping()
    assert peak(worker.process.pid) < FRONT_BYTES


@contextlib.contextmanager
def connected(worker: ServingWorker, count: int) -> Iterator[list[Connection]]:
    """So many connections, all closed afterwards."""
    with contextlib.ExitStack() as opened:
        connections = []
        for _ in range(count):
            connections.append(Connection(worker.api_port))
            opened.enter_context(connections[-1].sock)
        yield connections


def test_a_hundred_bodies_that_do_not_end_do_not_fill_the_front(worker: ServingWorker) -> None:
    with connected(worker, 100) as connections:
        for connection in connections:
            with contextlib.suppress(ConnectionError):  # it has been refused
                connection.sock.sendall(post(bytes(MIB - 10), length=MIB))

        assert connections[-1].answer()[0] == 429
        assert peak(worker.process.pid) < FRONT_BYTES


def test_more_connections_than_there_may_be_leave_the_probes_alone(worker: ServingWorker) -> None:
    with connected(worker, 1200) as connections:
        assert httpx.get(f"http://{HOST}:{worker.admin_port}/ping", timeout=60).status_code == 200
        with contextlib.suppress(ConnectionResetError):  # closed in this way or that
            assert connections[-1].sock.recv(1) == b""
        assert peak(worker.process.pid) < FRONT_BYTES


@pytest.mark.parametrize("name", [*PACKS, "outside"])
def test_a_voice_pack_is_told_as_broken(name: str, worker: ServingWorker) -> None:
    words = PACKS[name][1] if name in PACKS else "not a regular file"

    listed = worker.api.get("/v1/audio/voices").json()

    (reason,) = [voice["reason"] for voice in listed["broken"] if voice["id"] == name]
    assert words in reason
    assert listed["voices"] == []
    assert peak(worker.process.pid) < FRONT_BYTES


def test_a_body_that_comes_too_slowly_is_not_waited_for(slow: Connection, worker: ServingWorker) -> None:
    status, body = slow.answer()

    assert (status, json.loads(body)["detail"]) == (408, "the body did not arrive within 15 s")
    assert worker.status()["engine"]["pid"] is None

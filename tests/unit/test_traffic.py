"""The load client of the rollout tests: a test that counts its failures is worth as much as what it takes for whole."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import threading
from collections.abc import Iterator

import pytest

from cosyvoice_worker.wav import wav_header
from dev.traffic import Client, Reply

SAMPLES = 100
WAV = wav_header(24000, SAMPLES) + bytes(2 * SAMPLES)
STREAM = wav_header(24000, None) + bytes(2 * SAMPLES)
TOLD = b"X-CosyVoice-Version: v1\r\nX-CosyVoice-Speech-Tokens: 5\r\nX-CosyVoice-Speech-Tokens-Sha256: abc\r\n"


def reply(body: bytes, length: int | None = None, status: bytes = b"200 OK") -> bytes:
    declared = len(body) if length is None else length
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, TOLD, declared, body)


def chunked(body: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    head = b"HTTP/1.1 200 OK\r\nX-CosyVoice-Version: v1\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n%s" % (len(body), body, end)


@contextlib.contextmanager
def answering(*replies: bytes) -> Iterator[str]:
    """A server that gives each connection the next of `replies` and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answer in replies:
                connection, _ = server.accept()
                with connection, connection.makefile("rb") as request:
                    head = http.client.parse_headers(request) if request.readline() else None
                    request.read(int((head or {}).get("Content-Length", 0)))  # unread bytes would reset the connection
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


def ask(netloc: str, *, stream: bool, keep: bool = True) -> Reply:
    with contextlib.closing(Client(netloc, keep=keep)) as client:
        return client.speak(stream=stream)


def test_a_whole_reply_is_told_with_its_version_and_its_sound() -> None:
    with answering(reply(WAV)) as netloc:
        told = ask(netloc, stream=False)

    assert (told.error, told.version, told.samples) == (None, "v1", SAMPLES)
    assert told.sound[:4] == (False, 5, "abc", SAMPLES)


def test_a_whole_stream_is_told_by_its_samples() -> None:
    with answering(chunked(STREAM)) as netloc:
        told = ask(netloc, stream=True)

    assert (told.error, told.sound[:4]) == (None, (True, None, None, SAMPLES))


@pytest.mark.parametrize(
    ("stream", "answer", "error"),
    [
        (False, reply(WAV, len(WAV) + 1), r"IncompleteRead: IncompleteRead\(244 bytes read, 1 more expected\)"),
        (False, reply(WAV[:-2]), "BadReplyError: the wav header tells of 200 bytes, 198 came"),
        (False, reply(b"{}"), "BadReplyError: no wav file of 16-bit samples: 2 bytes, at first b'{}'"),
        (False, reply(b"wait", status=b"503 Unavailable"), "BadReplyError: 503: wait"),
        (False, b"HTTP/1.1 200 OK\r\n\r\n" + WAV, "BadReplyError: 200: neither a Content-Length nor chunks, .*"),
        (False, b"", "RemoteDisconnected: Remote end closed connection without response"),
        (True, chunked(STREAM, end=b""), r"IncompleteRead: IncompleteRead\(244 bytes read\)"),
        (True, chunked(STREAM, end=b"10\r\nabc"), r"IncompleteRead: IncompleteRead\(244 bytes read\)"),
    ],
    ids=["short", "short of its header", "no wav", "refused", "no end", "no reply", "no last chunk", "half a chunk"],
)
@pytest.mark.parametrize("keep", [True, False], ids=["kept", "new"])
def test_what_is_not_whole_is_a_failure(stream: bool, answer: bytes, error: str, keep: bool) -> None:
    with answering(answer) as netloc:
        told = ask(netloc, stream=stream, keep=keep)

    assert told.error is not None
    assert re.fullmatch(error, told.error), told.error


def test_the_request_after_a_failure_is_another_one_on_a_connection_of_its_own() -> None:
    with answering(b"", reply(WAV)) as netloc, contextlib.closing(Client(netloc, keep=True)) as client:
        first, second = client.speak(stream=False), client.speak(stream=False)

    assert first.error is not None
    assert second.error is None


def test_nobody_there_is_a_failure_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        netloc = f"127.0.0.1:{server.getsockname()[1]}"

    told = ask(netloc, stream=False)

    assert told.error is not None
    assert told.error.startswith("ConnectionRefusedError: ")

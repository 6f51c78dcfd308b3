"""Asking workers over real sockets, those that do not behave too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from cosyvoice_operator.observed import WorkerStatus
from cosyvoice_operator.workers import Direct, Workers, body_of
from tests.unit.operator.builders import pod

STATUS = json.dumps({"schema": 1, "phase": "Map", "ready": False}).encode()
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answering(*pieces: bytes) -> Handler:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
        writer.close()

    return handle


async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(OK)
    try:
        while True:
            writer.write(b" " * 65536)
            await writer.drain()
    except ConnectionError:
        writer.close()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def ask(handler: Handler) -> WorkerStatus | None:
    """What a worker that behaves like `handler` is taken to have said."""
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        workers = Workers(Direct(port), answer_seconds=2.0)
        answers = await workers.ask("speech", [pod("r1", address="127.0.0.1")])
    finally:
        server.close()
    return answers.get("narrator-a")


async def test_an_answer_in_pieces_is_read_to_its_end() -> None:
    assert await ask(answering(OK, STATUS[:9], STATUS[9:])) == WorkerStatus(phase="Map")


@pytest.mark.parametrize(
    "handler",
    [
        answering(),
        answering(b"HTTP/1.1 503 Service Unavailable\r\n\r\n", STATUS),
        answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", STATUS),
        answering(b"SSH-2.0-OpenSSH_9.6\r\n"),
        answering(OK, b"<html>"),
        answering(OK, STATUS[:-1], b" " * 70_000, b"}"),
        endless,
        silent,
    ],
    ids=["nothing", "503", "chunked", "another protocol", "html", "too much", "endless", "silent"],
)
async def test_a_worker_that_does_not_behave_has_said_nothing(handler: Handler) -> None:
    assert await ask(handler) is None


async def test_a_worker_that_nobody_can_reach_has_said_nothing() -> None:
    workers = Workers(Direct(1), answer_seconds=2.0)

    assert await workers.ask("speech", [pod("r1", address="127.0.0.1"), pod("r1", "b", address="no address")]) == {}


async def test_one_silent_worker_does_not_keep_the_others_from_being_heard() -> None:
    server = await asyncio.start_server(answering(OK, STATUS), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    deaf = await asyncio.start_server(silent, "127.0.0.2", port)
    try:
        pods = [pod("r1", "deaf", address="127.0.0.2"), pod("r1", "well", address="127.0.0.1")]
        answers = await Workers(Direct(port), answer_seconds=1.0).ask("speech", pods)
    finally:
        server.close()
        deaf.close()

    assert answers == {"well": WorkerStatus(phase="Map")}


def test_a_body_is_whatever_follows_the_headers() -> None:
    assert body_of(OK + b"a\r\n\r\nb") == b"a\r\n\r\nb"

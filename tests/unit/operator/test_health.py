"""/healthz: silence is a failure, waiting for the lease is not."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from cosyvoice_operator import health
from cosyvoice_operator.health import Hearing


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("heard_at", "now", "healthy"),
    [(None, 9999.0, True), (0.0, 0.0, True), (0.0, 30.0, True), (0.0, 30.1, False), (50.0, 75.0, True)],
)
def test_silence_of_more_than_three_resyncs_is_unhealthy(heard_at: float | None, now: float, healthy: bool) -> None:
    clock = Clock()
    hearing = Hearing(10.0, clock)
    if heard_at is not None:
        clock.now = heard_at
        hearing.heard()
    clock.now = now

    assert hearing.healthy() is healthy


async def get(port: int, request: bytes) -> tuple[int, Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


async def test_the_endpoint_answers_with_the_seconds_of_silence() -> None:
    clock = Clock()
    hearing = Hearing(10.0, clock)
    server = await health.serve(hearing, 0)
    port = next(one.getsockname()[1] for one in server.sockets if one.family == socket.AF_INET)
    try:
        standby = await get(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        hearing.heard()
        clock.now = 31.0
        deaf = await get(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        other = await get(port, b"GET /secrets HTTP/1.1\r\n\r\n")
        nonsense = await get(port, b"\r\n")
    finally:
        server.close()

    assert standby == (200, {"silenceSeconds": None})
    assert deaf == (503, {"silenceSeconds": 31.0})
    assert (other[0], nonsense[0]) == (404, 404)

"""Asking workers through the API server's proxy: what a pod answers there is as foreign as it is anywhere."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from cosyvoice_operator import cluster
from cosyvoice_operator.observed import WorkerStatus
from cosyvoice_operator.workers import Proxied, Workers
from tests.unit.operator.builders import pod

STATUS = json.dumps({"schema": 1, "phase": "Map", "ready": False}).encode()


def head(length: int) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()


async def ask(directory: Path, *pieces: bytes) -> WorkerStatus | None:
    """What a worker is taken to have said for which an API server sends these pieces, one after the other."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            pass  # the operator has heard enough
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            answered.set()

    answered = asyncio.Event()
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    try:
        async with cluster.connect(in_cluster=False, kubeconfig=str(kubeconfig)) as api:
            answers = await Workers(Proxied(api), answer_seconds=5.0).ask("speech", [pod("r1")])
        await answered.wait()
    finally:
        server.close()
    return answers.get("narrator-a")


async def test_an_answer_in_pieces_is_read_to_its_end(tmp_path: Path) -> None:
    assert await ask(tmp_path, head(len(STATUS)), STATUS[:9], STATUS[9:]) == WorkerStatus(phase="Map")


@pytest.mark.parametrize(
    "pieces",
    [
        (head(1000), STATUS),  # breaks off
        (head(200_000), b" " * 70_000, b" " * 130_000),  # longer than anything a worker says
        (head(len(b"{}")), b"{}"),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",),
    ],
)
async def test_an_answer_that_is_no_status_is_none(tmp_path: Path, pieces: tuple[bytes, ...]) -> None:
    assert await ask(tmp_path, *pieces) is None

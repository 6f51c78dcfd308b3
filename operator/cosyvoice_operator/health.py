"""/healthz: whether the operator still hears of the cluster.

A watch can die without an error. So it is not enough that the process runs: within a few resync periods something must
have been heard, an event or the answer to a resync. A standby that waits for the lease is healthy.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

SILENT_RESYNCS = 3.0
MAX_REQUEST_BYTES = 4096
_REASONS = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}


class Hearing:
    """When something was heard last. `monotonic` is the clock."""

    def __init__(self, resync_seconds: float, monotonic: Callable[[], float]) -> None:
        self._longest_silence = SILENT_RESYNCS * resync_seconds
        self._monotonic = monotonic
        self._heard: float | None = None

    def heard(self) -> None:
        """An event came, or a resync was answered."""
        self._heard = self._monotonic()

    def silence(self) -> float | None:
        """Seconds since something was heard; None while we do not lead and so do not listen."""
        return None if self._heard is None else self._monotonic() - self._heard

    def healthy(self) -> bool:
        """Whether that is not too long ago."""
        silence = self.silence()
        return silence is None or silence <= self._longest_silence


async def serve(hearing: Hearing, port: int) -> asyncio.Server:
    """Answer GET /healthz on `port` of every address: 200, or 503 with the seconds of silence."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(5):
                request = (await reader.read(MAX_REQUEST_BYTES)).split(b" ")
                code = 404 if request[1:2] != [b"/healthz"] else 200 if hearing.healthy() else 503
                body = json.dumps({"silenceSeconds": hearing.silence()})
                head = f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: application/json\r\n"
                writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
                await writer.drain()
        except (OSError, TimeoutError):
            return  # whoever asked has gone
        finally:
            writer.close()

    return await asyncio.start_server(answer, None, port)

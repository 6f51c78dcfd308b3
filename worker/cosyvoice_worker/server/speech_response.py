"""Writing one job's audio out: whole with its length and identity, or in chunks as it is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import Send

from cosyvoice_worker.channel import Done
from cosyvoice_worker.names import (
    HEADER_SAMPLE_RATE,
    HEADER_SEED,
    HEADER_SPEECH_TOKENS,
    HEADER_SPEECH_TOKENS_SHA256,
    HEADER_VERSION,
)
from cosyvoice_worker.server import problems
from cosyvoice_worker.server.job import BYTES_PER_SAMPLE, Job
from cosyvoice_worker.server.problems import Problem
from cosyvoice_worker.wav import wav_header

CONTENT_TYPES = {"wav": "audio/wav", "pcm": "audio/pcm"}
SLICE_BYTES = 64 * 1024


class SpeechResponse:
    """`write()` once. It raises the Problem that ends it; if `started`, the response is then left unfinished.

    `abort` drops the connection with what is unsent in it: a client that does not read keeps a response from ending.
    """

    def __init__(self, job: Job, send: Send, abort: Callable[[], None] | None, stalled_seconds: float) -> None:
        self.started = False
        self.gone = False
        self._job = job
        self._send = send
        self._abort = abort
        self._stalled_seconds = stalled_seconds

    async def write(self) -> None:
        """Send the response, as long as it takes to make the audio and as long as the client reads it."""
        if self._job.request.stream:
            await self._write_stream()
        else:
            await self._write_whole()

    async def _write_stream(self) -> None:
        chunk = await self._job.read()
        self._job.on_cut = self._abort
        await self._start({})
        if self._job.request.response_format == "wav":
            await self._body(wav_header(self._job.sample_rate, None) + (chunk or b""))
        elif chunk is not None:
            await self._body(chunk)
        while chunk is not None:
            chunk = await self._job.read()
            if chunk is not None:
                await self._body(chunk)
        await self._body(b"", last=True)

    async def _write_whole(self) -> None:
        chunks = []
        while (chunk := await self._job.read()) is not None:
            chunks.append(chunk)
        audio = b"".join(chunks)
        if self._job.request.response_format == "wav":
            audio = wav_header(self._job.sample_rate, len(audio) // BYTES_PER_SAMPLE) + audio
        headers = {"Content-Length": str(len(audio))}
        if isinstance(done := self._job.end, Done):
            headers[HEADER_SPEECH_TOKENS] = str(done.speech_tokens)
            headers[HEADER_SPEECH_TOKENS_SHA256] = done.speech_tokens_sha256
        await self._start(headers)
        for start in range(0, len(audio), SLICE_BYTES):
            await self._body(audio[start : start + SLICE_BYTES])
        await self._body(b"", last=True)

    async def _start(self, more: dict[str, str]) -> None:
        headers = {
            "Content-Type": CONTENT_TYPES[self._job.request.response_format],
            "Cache-Control": "no-store",
            HEADER_SAMPLE_RATE: str(self._job.sample_rate),
            HEADER_SEED: str(self._job.seed),
            **more,
        }
        if self._job.speaker is not None and self._job.speaker.version is not None:
            headers[HEADER_VERSION] = self._job.speaker.version
        raw = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        self.started = True
        await self._send({"type": "http.response.start", "status": 200, "headers": raw})

    async def _body(self, data: bytes, *, last: bool = False) -> None:
        """Send, waiting while the client's buffers are full, but not for ever."""
        try:
            async with asyncio.timeout(self._stalled_seconds):
                await self._send({"type": "http.response.body", "body": data, "more_body": not last})
        except TimeoutError as error:
            if self._abort is not None:
                self._abort()
            raise problems.client_too_slow(f"the client read nothing for {self._stalled_seconds:g} s") from error
        if self.gone and not last:
            # A connection that was dropped looks like one that was left: the job knows why.
            raise self._job.end if isinstance(self._job.end, Problem) else problems.client_gone()

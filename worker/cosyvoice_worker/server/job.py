"""One accepted speech request, between the dispatcher that fills it and the response that empties it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from cosyvoice_worker.channel import Done
from cosyvoice_worker.server.problems import Problem
from cosyvoice_worker.server.speech_request import SpeechRequest

BYTES_PER_SAMPLE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """What a request is spoken with: another version may take over while it is. `sample_rate` is in Hz."""

    sample_rate: int
    version: str | None = None


class Job:
    """The audio made so far that the client has not read, and how the request ended once it has.

    All times are the event loop's; the request has `seconds` from `arrived` on. `on_cut` is called when the request is
    ended early after its response may have begun, as that response may be stuck in a full socket. `speaker` is None
    while the request waits.
    """

    def __init__(self, *, id: int, request: SpeechRequest, seed: int, arrived: float, seconds: float) -> None:  # noqa: A002 - the channel's word
        self.id = id
        self.request = request
        self.seed = seed
        self.arrived = arrived
        self.seconds = seconds
        self.speaker: Speaker | None = None
        self.on_cut: Callable[[], None] | None = None
        self.audio_bytes = 0
        self.buffered = 0
        self.started_at: float | None = None
        self.first_audio_at: float | None = None
        self.ended_at: float | None = None
        self.end: Done | Problem | None = None
        self._chunks: deque[bytes] = deque()
        self._changed = asyncio.Event()

    @property
    def deadline(self) -> float:
        return self.arrived + self.seconds

    def push(self, s16: bytes, now: float) -> None:
        """Add audio. Without effect after the end."""
        if self.end is not None or not s16:
            return
        if self.first_audio_at is None:
            self.first_audio_at = now
        self._chunks.append(s16)
        self.buffered += len(s16)
        self.audio_bytes += len(s16)
        self._changed.set()

    def finish(self, end: Done | Problem) -> None:
        """End the job; only the first end counts. Audio before a Done is still read, audio before a Problem is not."""
        if self.end is None:
            self.end = end
            self._changed.set()

    async def read(self) -> bytes | None:
        """The next audio; None at the end. Raises the Problem that ended the request."""
        while True:
            if isinstance(self.end, Problem):
                raise self.end
            if self._chunks:
                chunk = self._chunks.popleft()
                self.buffered -= len(chunk)
                return chunk
            if self.end is not None:
                return None
            self._changed.clear()
            await self._changed.wait()

    @property
    def sample_rate(self) -> int:
        """In Hz; 0 while the request waits."""
        return 0 if self.speaker is None else self.speaker.sample_rate

    @property
    def audio_seconds(self) -> float:
        """How much audio has been made."""
        return self.audio_bytes / BYTES_PER_SAMPLE / self.sample_rate if self.sample_rate else 0.0

"""A queue of keys for a level-triggered controller: one pass at a time for each key, whatever set it off.

A key that is added while it waits is added once; added while it is being worked on, it is worked on again afterwards.
A pass that raises is tried again after a delay that doubles; one that returns a number is looked at again after so many
seconds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar, cast

Key = TypeVar("Key", bound=Hashable)

FIRST_DELAY_SECONDS = 0.2
LONGEST_DELAY_SECONDS = 120.0
JITTER = 0.2


class WorkQueue(Generic[Key]):
    """`work(key)` is one pass. It returns the seconds after which the key is due again, or None."""

    def __init__(
        self,
        work: Callable[[Key], Awaitable[float | None]],
        failed: Callable[[Key, Exception, float], None],
        *,
        workers: int,
    ) -> None:
        """`failed(key, error, delay)` is told of every pass that raised, and of the seconds until the next try."""
        self._work = work
        self._failed = failed
        self._workers = workers
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._waiting: set[Key] = set()  # in _ready
        self._running: set[Key] = set()
        self._again: set[Key] = set()  # added while running
        self._busy: set[asyncio.Task[None]] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._errors: dict[Key, int] = {}

    def add(self, key: Key) -> None:
        """The key is due now."""
        self._cancel_timer(key)
        if key in self._running:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.put_nowait(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """The key is due in so many seconds, unless it is due earlier already."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= loop.time() + seconds:
            return
        self._cancel_timer(key)
        self._timers[key] = loop.call_later(seconds, self._due, key)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; passes that have begun are finished. When this is cancelled they are not."""
        tasks = [asyncio.create_task(self._serve(stop)) for _ in range(self._workers)]
        unneeded = set(tasks)
        try:
            await stop.wait()
            unneeded -= self._busy
        finally:
            for timer in self._timers.values():
                timer.cancel()
            for task in unneeded:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, stop: asyncio.Event) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        while not stop.is_set():
            key = await self._ready.get()
            self._waiting.discard(key)
            self._running.add(key)
            self._busy.add(task)
            try:
                await self._pass(key)
            finally:
                self._busy.discard(task)
                self._running.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)

    async def _pass(self, key: Key) -> None:
        try:
            seconds = await self._work(key)
        except Exception as error:  # noqa: BLE001 - one model's trouble must not stop the others; it is told and retried
            count = self._errors[key] = self._errors.get(key, 0) + 1
            delay = backoff(count)
            self._failed(key, error, delay)
            self.add_after(key, delay)
            return
        self._errors.pop(key, None)
        if seconds is not None:
            self.add_after(key, seconds)

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _cancel_timer(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()


def backoff(errors: int) -> float:
    """Seconds to wait after so many errors in a row, with some jitter: many keys that failed together come apart."""
    delay = min(FIRST_DELAY_SECONDS * 2.0 ** (errors - 1), LONGEST_DELAY_SECONDS)
    return delay * (1 + JITTER * random.random())  # noqa: S311 - spreading load, not guarding secrets

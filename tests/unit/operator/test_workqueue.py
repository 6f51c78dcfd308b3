"""The queue: one pass at a time for each key, none lost, none for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_operator import workqueue
from cosyvoice_operator.workqueue import WorkQueue


class Work:
    """A pass that waits at a gate, and notes what it was called with."""

    def __init__(self, result: Callable[[str, int], float | None] | None = None) -> None:
        self.done: list[str] = []
        self.running: set[str] = set()
        self.failures: list[tuple[str, str, float]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.began = asyncio.Event()
        self.two_at_once = asyncio.Event()
        self._result = result
        self._changed = asyncio.Condition()

    async def __call__(self, key: str) -> float | None:
        assert key not in self.running, "two passes over one key at a time"
        self.running.add(key)
        self.began.set()
        if len(self.running) == 2:
            self.two_at_once.set()
        await self.gate.wait()
        self.running.discard(key)
        async with self._changed:
            self.done.append(key)
            self._changed.notify_all()
        return self._result(key, self.done.count(key)) if self._result else None

    def failed(self, key: str, error: Exception, delay: float) -> None:
        self.failures.append((key, str(error), delay))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(condition)


@asynccontextmanager
async def running(work: Work, workers: int = 2) -> AsyncIterator[WorkQueue[str]]:
    stop = asyncio.Event()
    queue: WorkQueue[str] = WorkQueue(work, work.failed, workers=workers)
    task = asyncio.create_task(queue.run(stop))
    try:
        yield queue
    finally:
        stop.set()
        work.gate.set()
        await task


async def test_a_key_that_waits_is_worked_on_once() -> None:
    work = Work()
    async with running(work, workers=1) as queue:
        work.gate.clear()
        queue.add("a")
        await work.began.wait()
        for _ in range(5):
            queue.add("b")
        work.gate.set()
        await work.until(lambda: len(work.done) == 2)

    assert work.done == ["a", "b"]


async def test_a_key_that_is_added_during_its_pass_gets_another_one() -> None:
    work = Work()
    async with running(work) as queue:
        work.gate.clear()
        queue.add("a")
        await work.began.wait()
        queue.add("a")
        queue.add("a")
        work.gate.set()
        await work.until(lambda: len(work.done) == 2)

    assert work.done == ["a", "a"]


async def test_different_keys_do_not_wait_for_each_other() -> None:
    work = Work()
    async with running(work) as queue:
        work.gate.clear()
        queue.add("a")
        queue.add("b")
        await work.two_at_once.wait()
        work.gate.set()
        await work.until(lambda: len(work.done) == 2)


async def test_a_pass_may_ask_for_the_next_one() -> None:
    work = Work(lambda _key, count: 0.001 if count < 3 else None)
    async with running(work) as queue:
        queue.add("a")
        await work.until(lambda: len(work.done) == 3)

    assert work.done == ["a", "a", "a"]


async def test_a_pass_that_fails_is_told_and_tried_again_and_the_others_go_on() -> None:
    def result(key: str, count: int) -> None:
        if key == "bad" and count < 3:
            raise ValueError(f"try {count}")

    work = Work(result)
    async with running(work, workers=1) as queue:
        queue.add("bad")
        queue.add("good")
        await work.until(lambda: work.done.count("bad") == 3 and "good" in work.done)

    assert [(key, text) for key, text, _ in work.failures] == [("bad", "try 1"), ("bad", "try 2")]
    assert work.failures[0][2] < work.failures[1][2]


async def test_an_earlier_time_wins() -> None:
    work = Work()
    async with running(work) as queue:
        queue.add_after("a", 3600)
        queue.add_after("a", 0.001)
        queue.add_after("a", 3600)
        await work.until(lambda: work.done == ["a"])


async def test_a_pass_that_has_begun_is_finished_at_the_end_and_none_is_begun() -> None:
    work = Work()
    stop = asyncio.Event()
    queue: WorkQueue[str] = WorkQueue(work, work.failed, workers=1)
    task = asyncio.create_task(queue.run(stop))
    work.gate.clear()
    queue.add("begun")
    await work.began.wait()
    queue.add("waiting")

    stop.set()
    await asyncio.sleep(0)
    work.gate.set()
    await task

    assert work.done == ["begun"]


async def test_a_pass_is_cut_off_when_the_queue_is_cancelled() -> None:
    work = Work()
    queue: WorkQueue[str] = WorkQueue(work, work.failed, workers=1)
    task = asyncio.create_task(queue.run(asyncio.Event()))
    work.gate.clear()
    queue.add("begun")
    await work.began.wait()

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert work.done == []


@given(st.integers(1, 60))
def test_delays_grow_up_to_a_limit(errors: int) -> None:
    longest = workqueue.LONGEST_DELAY_SECONDS * (1 + workqueue.JITTER)

    assert workqueue.FIRST_DELAY_SECONDS <= workqueue.backoff(errors) <= longest

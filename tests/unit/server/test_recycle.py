"""When a fresh engine takes over from one of the same version."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cosyvoice_worker.server.recycle import due, retry_after
from cosyvoice_worker.server.room import MIB
from cosyvoice_worker.server.second_engine import Container
from cosyvoice_worker.settings import Recycle
from tests.unit.server import fake_engine
from tests.unit.server.fake_engine import FakeEngine
from tests.unit.server.pod import Pod
from tests.unit.server.running_front import RunningFront, running_front

AFTER_TWO = Recycle(max_requests=2)
AFTER_10_MIB = Recycle(max_memory_growth_bytes=10 * MIB)


@pytest.mark.parametrize(
    ("recycle", "requests", "growth", "reason"),
    [
        (Recycle(), 10**9, 10**12, None),
        (Recycle(max_requests=5), 4, 10**12, None),
        (Recycle(max_requests=5), 5, 0, "maxRequests"),
        (Recycle(max_memory_growth_bytes=5), 10**9, 4, None),
        (Recycle(max_memory_growth_bytes=5), 0, 5, "maxMemoryGrowth"),
        (Recycle(max_requests=5, max_memory_growth_bytes=5), 5, 5, "maxRequests"),
    ],
)
def test_either_limit_calls_for_a_fresh_engine(
    recycle: Recycle, requests: int, growth: int, reason: str | None
) -> None:
    assert due(recycle, requests, growth) == reason


def test_after_failures_it_waits_longer_and_longer_up_to_an_hour() -> None:
    assert [retry_after(failures) for failures in (1, 2, 3, 6, 7, 1000)] == [60, 120, 240, 1920, 3600, 3600]


def recycles(front: RunningFront, reason: str, result: str = "switched") -> float:
    registry = front.front.dispatcher.metrics.registry
    labels = {"reason": reason, "result": result}
    return registry.get_sample_value("cosyvoice_engine_recycles_total", labels) or 0.0


async def test_after_so_many_requests_a_fresh_engine_of_the_same_version_takes_over() -> None:
    async with running_front(fake_engine.good, recycle=AFTER_TWO) as front:
        for _ in range(2):
            assert (await front.speak("Hi.")).status == 200
        await front.until(lambda: recycles(front, "maxRequests") == 1)
        await front.launcher.engines[0].wait()
        status = (await front.ask("GET", "/status", admin=True)).json
        spoken = await front.speak("Hi.")

    assert spoken.status == 200
    assert (status["swap"], status["engine"]["restarts"], status["ready"]) == (None, 0, True)
    assert status["engine"]["pid"] == front.launcher.engines[1].pid
    assert front.launcher.versions[0] == front.launcher.versions[1]


async def growing(engine: FakeEngine) -> None:
    """Load, and hold 6 MiB more after each request."""
    await engine.load()
    while True:
        request = await engine.request()
        engine.private += 6 * MIB
        await fake_engine.speak(engine, request)


async def test_after_so_much_growth_a_fresh_engine_takes_over() -> None:
    async with running_front(growing, recycle=AFTER_10_MIB) as front:
        await front.speak("Hi.")
        await asyncio.sleep(0.05)
        early = len(front.launcher.engines)
        await front.speak("Hi.")
        await front.until(lambda: recycles(front, "maxMemoryGrowth") == 1)

    assert early == 1


async def test_memory_that_is_given_back_after_a_request_is_no_growth() -> None:
    async def breathing(engine: FakeEngine) -> None:
        await engine.load()
        while True:
            request = await engine.request()
            engine.private += 50 * MIB
            await asyncio.sleep(0.3)
            engine.private -= 50 * MIB
            await fake_engine.speak(engine, request)

    async with running_front(breathing, recycle=AFTER_10_MIB) as front:
        await front.speak("Hi.")
        await asyncio.sleep(0.05)
        life = front.front.supervisor.serving

        assert life is not None
        assert (life.usage.growth, life.usage.peak) == (0, 150 * MIB)
        assert len(front.launcher.engines) == 1


async def test_without_room_it_goes_on_with_the_engine_it_has_and_does_not_ask_at_once_again() -> None:
    def full() -> Container:
        return Container(limit=300 * MIB, used=200 * MIB)

    async with running_front(fake_engine.good, recycle=AFTER_TWO, measure=full) as front:
        for _ in range(2):
            await front.speak("Hi.")
        await front.until(lambda: recycles(front, "maxRequests", "no-room") == 1)
        for _ in range(3):
            assert (await front.speak("Hi.")).status == 200
        await asyncio.sleep(0.05)

        assert recycles(front, "maxRequests", "no-room") == 1
        assert len(front.launcher.engines) == 1


async def test_a_fresh_engine_that_cannot_load_changes_nothing() -> None:
    async with running_front(fake_engine.good, fake_engine.refusing, recycle=AFTER_TWO) as front:
        for _ in range(2):
            await front.speak("Hi.")
        await front.until(lambda: recycles(front, "maxRequests", "failed") == 1)
        status = (await front.ask("GET", "/status", admin=True)).json

        assert (status["ready"], status["failure"], status["engine"]["restarts"]) == (True, None, 0)
        assert (await front.speak("Hi.")).status == 200


async def test_an_order_goes_before_a_fresh_engine(tmp_path: Path) -> None:
    scripts = (fake_engine.good, fake_engine.never_ready, fake_engine.good)
    pod = Pod(tmp_path)
    async with running_front(*scripts, recycle=AFTER_TWO, root=tmp_path) as front:
        for _ in range(2):
            await front.speak("Hi.")
        await front.until(lambda: len(front.launcher.engines) == 2)
        pod.offer("b1b2b3b4b5.1")
        await front.until(lambda: front.front.state.identity.revision == "b1b2b3b4b5")
        fresh = await front.launcher.engines[1].wait()

    assert fresh == fake_engine.KILLED

"""How the front ends."""

from __future__ import annotations

import asyncio

from cosyvoice_worker.channel import Shutdown
from cosyvoice_worker.server.limits import Limits
from tests.unit.server import fake_engine
from tests.unit.server.fake_engine import Paused, samples
from tests.unit.server.running_front import RunningFront, running_front

QUICK = Limits(linger_seconds=0.1, kill_seconds=0.2)


async def test_with_nothing_to_do_the_end_comes_at_once_and_the_engine_is_told() -> None:
    async with running_front(fake_engine.good, limits=QUICK) as front:
        front.front.stop()

        assert await front.running is None
        assert front.launcher.engines[0].received == [Shutdown()]


async def test_while_draining_requests_are_finished_and_new_ones_taken_on_closing_connections() -> None:
    engine = Paused()
    async with running_front(engine, limits=QUICK) as front:
        begun, late = await front.connect(), await front.connect()
        await begun.speak("Begun.", response_format="pcm")
        await front.until(lambda: front.front.dispatcher.in_flight == 1)
        front.front.stop()
        await front.until(lambda: front.front.state.draining)
        health = await front.ask("GET", "/health")
        status = await front.ask("GET", "/status", admin=True)
        await late.speak("Late.", response_format="pcm")
        await front.until(lambda: front.front.dispatcher.queued == 1)
        engine.go_on.set()
        replies = [await begun.reply(), await late.reply()]
        closed = [await begun.closed(), await late.closed()]
        for client in (begun, late):
            client.leave()

        assert await front.running is None

    assert (health.status, health.json) == (503, {"phase": "Ready", "draining": True})
    assert (status.json["phase"], status.json["ready"]) == ("Ready", False)
    assert [reply.body for reply in replies] == [samples("Begun."), samples("Late.")]
    assert [reply.headers["connection"] for reply in replies] == ["close"] * 2
    assert closed == [True, True]


async def test_who_was_promised_another_request_before_the_end_began_is_served_once_more() -> None:
    engine = Paused()
    async with running_front(engine, limits=Limits(kill_seconds=0.2)) as front:
        client = await front.connect()
        await client.speak("Begun.", stream=True, response_format="pcm")
        await front.until(lambda: front.front.dispatcher.in_flight == 1)
        engine.go_on.set()
        _, before = await client.head()
        front.front.stop()
        await front.until(lambda: front.front.state.draining)
        while await client.chunk():
            pass
        await front.until(lambda: front.front.dispatcher.in_flight == 0)
        await client.speak("Again.", response_format="pcm")
        again = await client.reply()
        closed = await client.closed()
        client.leave()

        assert await front.running is None

    assert "connection" not in before
    assert (again.status, again.headers["connection"], again.body) == (200, "close", samples("Again."))
    assert closed


async def test_a_connection_that_nobody_uses_holds_the_end_up_for_a_moment_only() -> None:
    async with running_front(fake_engine.good, limits=QUICK) as front:
        idle = await front.connect()
        await idle.speak("Before.", response_format="pcm")
        await idle.reply()
        front.front.stop()

        assert await front.running is None
        assert await idle.closed()
        idle.leave()


async def requests_until_end(front: RunningFront, *, stop_again: bool) -> list[tuple[int, str]]:
    """One request in the engine and one that waits, when the front is stopped: how they end."""
    clients = [await front.connect() for _ in range(2)]
    for client in clients:
        await client.speak()
    await front.until(lambda: front.front.dispatcher.queued == 1)
    front.front.stop()
    if stop_again:
        await front.until(lambda: front.front.state.draining)
        front.front.stop()
    replies = await asyncio.gather(*(client.reply() for client in clients))
    await front.running
    for client in clients:
        client.leave()
    return [(reply.status, reply.json["title"]) for reply in replies]


async def test_when_the_patience_is_over_requests_are_told_to_come_again() -> None:
    limits = Limits(drain_seconds=0.1, kill_seconds=0.2)
    async with running_front(Paused(), limits=limits) as front:
        assert await requests_until_end(front, stop_again=False) == [(503, "Stopping")] * 2


async def test_asked_a_second_time_it_waits_for_nobody() -> None:
    async with running_front(Paused(), limits=Limits(drain_seconds=3600, kill_seconds=0.2)) as front:
        assert await requests_until_end(front, stop_again=True) == [(503, "Stopping")] * 2


async def test_an_engine_that_cannot_load_ends_the_front_with_its_outcome() -> None:
    async with running_front(fake_engine.refusing, limits=QUICK) as front:
        outcome = await front.running

        assert outcome is not None
        assert (outcome.exit_code, outcome.message) == (66, "llm.pt lacks x")

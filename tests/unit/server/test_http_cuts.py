"""Responses that end before they should: the client must see that, and the engine must be free."""

from __future__ import annotations

import asyncio
import socket

from cosyvoice_worker.channel import Audio, Cancel, Synthesize
from cosyvoice_worker.server.limits import Limits
from tests.unit.server import fake_engine
from tests.unit.server.fake_engine import FakeEngine, samples
from tests.unit.server.running_front import HOST, Client, running_front


async def endless(engine: FakeEngine) -> None:
    """Send audio until cancelled; then the same again."""
    await engine.load()
    while True:
        request = await engine.request()
        cancelled = asyncio.ensure_future(engine.cancelled(request))
        seq = 0
        while not cancelled.done():
            await engine.send(Audio(id=request.id, seq=seq, s16=bytes(32_000)))
            seq += 1
            await asyncio.sleep(0)


async def one_piece(engine: FakeEngine) -> None:
    """Send one piece and then wait to be cancelled."""
    await engine.load()
    while True:
        request = await engine.request()
        await engine.send(Audio(id=request.id, seq=0, s16=samples("ab")))
        await engine.cancelled(request)


async def test_a_stream_whose_engine_dies_ends_without_its_last_chunk() -> None:
    async with running_front(fake_engine.dying_in_mid_stream, fake_engine.good) as front:
        reply = await front.speak(stream=True, response_format="pcm")

        assert (reply.status, reply.complete, reply.body) == (200, False, samples("ab"))
        assert front.count("engine-died") == 1


async def test_a_stream_whose_deadline_passes_ends_without_its_last_chunk() -> None:
    async with running_front(one_piece, limits=Limits(request_seconds=0.2, kill_seconds=0.2)) as front:
        reply = await front.speak(stream=True, response_format="pcm")

        assert (reply.status, reply.complete, reply.body) == (200, False, samples("ab"))
        assert front.count("deadline-passed") == 1


async def test_a_client_that_leaves_frees_the_engine_at_once() -> None:
    async with running_front(one_piece) as front:
        engine = front.launcher.engines[0]
        for stream in (False, True):
            client = await front.connect()
            await client.speak(stream=stream)
            await front.until(lambda: front.front.dispatcher.in_flight == 1)
            client.leave()
            await front.until(lambda: front.front.dispatcher.in_flight == 0)

        assert [type(message) for message in engine.received] == [Synthesize, Cancel] * 2
        await front.until(lambda: front.count("client-gone") == 2)


async def test_a_client_that_leaves_the_queue_is_never_given_to_the_engine() -> None:
    async with running_front(fake_engine.waiting) as front:
        first, second = await front.connect(), await front.connect()
        await first.speak("First.")
        await front.until(lambda: front.front.dispatcher.in_flight == 1)
        await second.speak("Second.")
        await front.until(lambda: front.front.dispatcher.queued == 1)
        second.leave()
        await front.until(lambda: front.front.dispatcher.queued == 0)
        first.leave()
        await front.until(lambda: front.front.dispatcher.in_flight == 0)

        requests = [m for m in front.launcher.engines[0].received if isinstance(m, Synthesize)]
        assert [request.text for request in requests] == ["First."]


class SlowClient(Client):
    """A client with a small buffer that it does not empty, until it opens wide."""

    def open_wide(self) -> None:
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * 1024 * 1024)


async def slow_client(port: int) -> SlowClient:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (HOST, port))
    return SlowClient(*await asyncio.open_connection(sock=sock, limit=4096))


async def test_a_slow_reader_of_a_stream_is_cut_and_does_not_hold_the_engine() -> None:
    limits = Limits(buffered_bytes=1_000_000, kill_seconds=0.2)
    async with running_front(endless, limits=limits) as front:
        client = await slow_client(front.api_port)
        await client.speak(stream=True)
        await front.until(lambda: front.count("client-too-slow") == 1)
        await front.until(lambda: front.front.dispatcher.in_flight == 0)

        client.open_wide()
        reply = await client.reply()
        assert (reply.status, reply.complete) == (200, False)
        client.leave()


async def test_a_client_that_reads_nothing_of_a_whole_answer_is_dropped() -> None:
    async def long(engine: FakeEngine) -> None:
        await engine.load()
        while True:
            request = await engine.request()
            for seq in range(20):
                await engine.send(Audio(id=request.id, seq=seq, s16=bytes(1_000_000)))
            await engine.send(fake_engine.done(request))

    async with running_front(long, limits=Limits(stalled_seconds=0.2, kill_seconds=0.2)) as front:
        client = await slow_client(front.api_port)
        await client.speak()
        await front.until(lambda: front.count("client-too-slow") == 1)

        assert front.front.dispatcher.in_flight == 0
        client.leave()

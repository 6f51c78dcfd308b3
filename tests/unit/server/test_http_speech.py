"""Speech over HTTP, when all goes well."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator

import pytest

from cosyvoice_worker.channel import Audio, Synthesize
from cosyvoice_worker.wav import wav_header
from tests.unit.server import fake_engine
from tests.unit.server.fake_engine import RATE, FakeEngine, done, samples
from tests.unit.server.running_front import RunningFront, running_front

TEXT = "Hello."


@pytest.fixture
async def front() -> AsyncIterator[RunningFront]:
    async with running_front(fake_engine.good) as running:
        yield running


async def test_a_whole_answer_is_a_wav_file_with_its_length_and_identity(front: RunningFront) -> None:
    reply = await front.speak(TEXT, seed=7)

    assert reply.status == 200
    assert reply.body == wav_header(RATE, len(TEXT) * RATE // 100) + samples(TEXT)
    told = {name: value for name, value in reply.headers.items() if name.startswith(("x-cosyvoice", "content"))}
    assert told == {
        "content-type": "audio/wav",
        "content-length": str(44 + len(samples(TEXT))),
        "x-cosyvoice-sample-rate": "24000",
        "x-cosyvoice-seed": "7",
        "x-cosyvoice-speech-tokens": "6",
        "x-cosyvoice-speech-tokens-sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
        "x-cosyvoice-version": "v1.2.0",
    }


async def test_pcm_is_the_samples_alone(front: RunningFront) -> None:
    reply = await front.speak(TEXT, response_format="pcm")

    assert (reply.headers["content-type"], reply.body) == ("audio/pcm", samples(TEXT))


@pytest.mark.parametrize(("response_format", "header"), [("wav", wav_header(RATE, None)), ("pcm", b"")])
async def test_a_stream_is_chunked_and_ends_properly(front: RunningFront, response_format: str, header: bytes) -> None:
    reply = await front.speak(TEXT, stream=True, response_format=response_format)

    assert (reply.status, reply.headers["transfer-encoding"], reply.complete) == (200, "chunked", True)
    assert reply.body == header + samples(TEXT)
    assert reply.headers["x-cosyvoice-sample-rate"] == "24000"
    assert "x-cosyvoice-speech-tokens" not in reply.headers


async def test_the_first_audio_of_a_stream_arrives_while_the_engine_works() -> None:
    heard = asyncio.Event()

    async def waits_until_heard(engine: FakeEngine) -> None:
        await engine.load()
        request = await engine.request()
        await engine.send(Audio(id=request.id, seq=0, s16=b"first!"))
        await heard.wait()
        await engine.send(Audio(id=request.id, seq=1, s16=b"second"), done(request))
        await engine.request()

    async with running_front(waits_until_heard) as front:
        client = await front.connect()
        await client.speak(stream=True, response_format="pcm")
        await client.head()

        assert await client.chunk() == b"first!"
        heard.set()
        assert [await client.chunk(), await client.chunk()] == [b"second", b""]
        client.leave()


async def test_every_field_reaches_the_engine(front: RunningFront) -> None:
    await front.speak("你好", voice="ben", seed=11, speed=1.5, instructions="Whisper.")

    (request,) = front.launcher.engines[0].received
    assert isinstance(request, Synthesize)
    assert request.deadline_seconds is not None
    assert 0 < request.deadline_seconds <= 300
    assert request == Synthesize(
        id=1,
        text="你好",
        voice="ben",
        stream=False,
        seed=11,
        speed=1.5,
        instructions="Whisper.",
        deadline_seconds=request.deadline_seconds,
    )


async def test_a_seed_is_drawn_and_told_when_none_is_sent(front: RunningFront) -> None:
    seeds = [int((await front.speak()).headers["x-cosyvoice-seed"]) for _ in range(3)]

    assert len(set(seeds)) == 3
    assert all(0 <= seed < 2**53 for seed in seeds)
    assert [request.seed for request in front.launcher.engines[0].received if isinstance(request, Synthesize)] == seeds


async def test_a_connection_is_kept_for_the_next_request(front: RunningFront) -> None:
    client = await front.connect()
    bodies = []
    for _ in range(3):
        await client.speak(TEXT, response_format="pcm")
        bodies.append((await client.reply()).body)
    client.leave()

    assert bodies == [samples(TEXT)] * 3


async def test_requests_at_once_are_all_answered_with_their_own_audio(front: RunningFront) -> None:
    texts = ["a" * length for length in range(1, 11)]

    replies = await asyncio.gather(*(front.speak(text, response_format="pcm") for text in texts))

    assert [reply.body for reply in replies] == [samples(text) for text in texts]


@pytest.mark.parametrize(("sent", "kept"), [("abc-1", True), ("a" * 129, False), ("a b", False), ("", False)])
async def test_a_request_id_is_kept_if_it_can_stand_in_a_log(front: RunningFront, sent: str, kept: bool) -> None:
    reply = await front.ask("GET", "/ping", x_request_id=sent)

    assert (reply.headers["x-request-id"] == sent) is kept
    assert reply.headers["x-request-id"]


async def test_without_preload_the_first_request_loads_the_model() -> None:
    async with running_front(fake_engine.good, lazy=True) as front:
        health = await front.ask("GET", "/health")
        engines = len(front.launcher.engines)
        reply = await front.speak(TEXT, response_format="pcm")

        assert (health.status, health.json, engines) == (200, {"phase": "Start"}, 0)
        assert reply.body == samples(TEXT)

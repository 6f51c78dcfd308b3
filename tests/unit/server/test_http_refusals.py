"""Requests that are refused, as the client sees it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from cosyvoice_worker.channel import Failed
from cosyvoice_worker.server.limits import MIB, Limits
from tests.unit.server import fake_engine
from tests.unit.server.fake_engine import FakeEngine
from tests.unit.server.running_front import RunningFront, running_front

SPEECH = "/v1/audio/speech"


@pytest.fixture
async def front() -> AsyncIterator[RunningFront]:
    async with running_front(fake_engine.good) as running:
        yield running


async def test_a_problem_tells_what_where_and_under_which_id(front: RunningFront) -> None:
    reply = await front.ask("POST", SPEECH, b'{"input": "..."}', x_request_id="r-1")

    assert (reply.status, reply.headers["content-type"]) == (400, "application/problem+json")
    assert reply.json == {
        "type": "https://cosyvoice.dev/problems/nothing-to-speak",
        "title": "Nothing to speak",
        "status": 400,
        "detail": "input has no letter or digit: there is nothing to speak",
        "instance": "/v1/audio/speech",
        "requestId": "r-1",
        "field": "input",
    }
    assert front.count("nothing-to-speak") == 1


async def test_an_unknown_voice_is_told_with_those_there_are(front: RunningFront) -> None:
    reply = await front.speak(voice="dora")

    assert (reply.status, reply.json["voices"]) == (404, ["anna", "ben"])
    assert reply.json["detail"] == "there is no voice 'dora'; there are: anna, ben"
    assert front.launcher.engines[0].received == []


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "found out while reading"])
async def test_a_body_over_the_limit_is_refused_before_it_has_all_arrived(front: RunningFront, declared: bool) -> None:
    client = await front.connect()
    if declared:
        await client.send("POST", SPEECH, content_length=str(100 * MIB))
    else:
        await client.send("POST", SPEECH, transfer_encoding="chunked")
        client.writer.write(b"%x\r\n" % (2 * MIB) + bytes(2 * MIB))
    reply = await client.reply()
    client.leave()

    assert (reply.status, reply.headers["connection"]) == (413, "close")
    assert reply.json["detail"] == "the body is over the limit of 1,048,576 bytes"


async def test_bodies_that_are_read_at_a_time_have_a_limit_together() -> None:
    async with running_front(fake_engine.good, limits=Limits(bodies_bytes=1000)) as front:
        slow = await front.connect()
        await slow.send("POST", SPEECH, b" " * 990, content_length="2000")
        while (refused := await front.speak()).status == 200:
            pass  # what the slow one has sent is not all there yet
        slow.leave()
        while (await front.speak()).status == 429:
            pass

    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert refused.json["detail"].startswith("the bodies that are being read hold more than 1,000 bytes together")


async def test_a_body_whose_length_is_told_in_two_ways_ends_the_connection(front: RunningFront) -> None:
    client = await front.connect()
    await client.send("POST", SPEECH, b"0\r\n\r\n", transfer_encoding="chunked")
    await client.send("GET", "/v1/models")
    reply = await client.reply()

    assert (reply.status, reply.headers["connection"]) == (400, "close")
    assert reply.json["detail"].startswith("the length of the body is told twice")
    assert await client.closed()
    client.leave()


async def test_a_coding_in_a_second_header_is_seen_too(front: RunningFront) -> None:
    body = b'{"input": "Hi."}'
    reply = await front.ask("POST", SPEECH, body, content_encoding="identity", Content_Encoding="gzip")

    assert (reply.status, reply.json["detail"][:36]) == (415, "the body is coded ('identity, gzip')")


@pytest.mark.parametrize("path", ["/v1/models/", "/ping/"])
async def test_nobody_is_sent_to_an_address_of_the_client_s_making(front: RunningFront, path: str) -> None:
    reply = await front.ask("GET", path, host="elsewhere.example")

    assert reply.status == 404
    assert "elsewhere" not in str(reply)


async def test_one_connection_too_many_is_dropped_and_the_probes_are_answered() -> None:
    async with running_front(fake_engine.good, limits=Limits(connections=2)) as front:
        first, second = [await front.connect() for _ in range(2)]
        third = await front.connect()
        assert await third.closed()
        assert (await front.ask("GET", "/ping", admin=True)).status == 200
        await first.send("GET", "/ping")
        assert (await first.reply()).status == 200

        second.leave()
        await first.send("GET", "/ping")
        await first.reply()
        assert (await front.ask("GET", "/ping")).status == 200
        for client in (first, third):
            client.leave()


async def test_a_client_that_reads_nothing_is_not_waited_for() -> None:
    async with running_front(fake_engine.good, limits=Limits(unread_seconds=0.05)) as front:
        page = len((await front.ask("GET", "/openapi.json")).body)
        client = await front.connect()
        for _ in range(3000):
            await client.send("GET", "/openapi.json")
        await asyncio.sleep(0.5)
        received = 0
        try:
            while piece := await client.reader.read(1 << 20):
                received += len(piece)
        except ConnectionError:
            pass
        client.leave()

    assert 0 < received < 3000 * page


@pytest.mark.parametrize(("coding", "status"), [("gzip", 415), ("br, gzip", 415), ("identity", 200), ("", 200)])
async def test_a_coded_body_is_not_unpacked(front: RunningFront, coding: str, status: int) -> None:
    reply = await front.ask("POST", SPEECH, b'{"input": "Hi."}', content_encoding=coding)

    assert reply.status == status
    if status == 415:
        assert reply.json["detail"] == f"the body is coded ({coding!r}): send it without Content-Encoding"


async def test_a_client_that_writes_its_large_body_first_still_sees_the_answer(front: RunningFront) -> None:
    reply = await front.ask("POST", SPEECH, b"x" * (4 * MIB))

    assert reply.status == 413


async def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    async with running_front(fake_engine.good, limits=Limits(body_seconds=0.05)) as front:
        client = await front.connect()
        await client.send("POST", SPEECH, b"{", content_length="10")
        reply = await client.reply()
        client.leave()

    assert (reply.status, reply.headers["connection"]) == (408, "close")
    assert reply.json["detail"] == "the body did not arrive within 0.05 s"


@pytest.mark.parametrize("head", [b"", b"POST /v1/audio/speech HTTP/1.1\r\nhost"], ids=["nothing", "half a head"])
async def test_a_head_that_does_not_arrive_is_not_waited_for(head: bytes) -> None:
    async with running_front(fake_engine.good, limits=Limits(head_seconds=0.05)) as front:
        client = await front.connect()
        client.writer.write(head)

        assert await client.closed()
        client.leave()


async def test_a_body_that_nobody_reads_is_not_waited_for_either() -> None:
    async with running_front(fake_engine.good, limits=Limits(head_seconds=0.05)) as front:
        client = await front.connect()
        await client.send("GET", "/ping", content_length="1000000")
        assert (await client.reply()).status == 200

        client.writer.write(b"a")

        assert await client.closed()
        client.leave()


async def test_a_full_queue_is_told_with_when_to_come_back() -> None:
    async with running_front(fake_engine.waiting) as front:
        clients = [await front.connect() for _ in range(17)]
        for client in clients:
            await client.speak()
        await front.until(lambda: front.front.dispatcher.queued == 16)
        reply = await front.speak()
        for client in clients:
            client.leave()

    assert (reply.status, reply.headers["retry-after"]) == (429, "17")
    assert reply.json["detail"] == "the queue of 16 requests is full; try again in 17 s"


async def test_a_deadline_before_the_first_byte_is_a_504() -> None:
    async with running_front(fake_engine.waiting, limits=Limits(request_seconds=0.05)) as front:
        replies = [await front.speak(stream=stream) for stream in (False, True)]

    assert [reply.status for reply in replies] == [504, 504]
    assert replies[0].json["detail"] == "the request was not finished within 0.05 s"


async def test_before_the_model_is_loaded_the_phase_is_told() -> None:
    async with running_front(fake_engine.never_ready, ready=False) as front:
        await front.until(lambda: front.front.state.phase == "Map")
        reply = await front.speak()

    assert (reply.status, reply.headers["retry-after"], reply.json["phase"]) == (503, "5", "Map")
    assert reply.json["detail"] == "the worker is not ready: it is in phase Map; try again in 5 s"


async def test_an_engine_that_dies_before_the_first_audio_is_a_503() -> None:
    async with running_front(fake_engine.dying_after(0), fake_engine.good) as front:
        reply = await front.speak(stream=True)

    assert (reply.status, reply.json["title"]) == (503, "Engine died")
    assert int(reply.headers["retry-after"]) >= 1


@pytest.mark.parametrize(("status", "reason"), [(400, "InvalidConfig"), (404, "InvalidConfig"), (503, "OutOfMemory")])
async def test_what_the_engine_refuses_is_told_with_its_reason(status: int, reason: str) -> None:
    async def refusing(engine: FakeEngine) -> None:
        await engine.load()
        request = await engine.request()
        await engine.send(Failed(id=request.id, reason=reason, message="because", status=status))
        await engine.request()

    async with running_front(refusing) as front:
        reply = await front.speak()

    assert (reply.status, reply.json["reason"], reply.json["detail"]) == (status, reason, "because")


async def test_a_path_that_is_not_there_and_a_method_that_is_not_allowed(front: RunningFront) -> None:
    missing = await front.ask("GET", "/v2/speech")
    wrong = await front.ask("GET", SPEECH)

    assert (missing.status, missing.json["detail"]) == (
        404,
        "there is nothing at /v2/speech; /docs tells what there is",
    )
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json["detail"] == "GET is not allowed here; allowed: POST"


async def test_after_a_refusal_the_connection_goes_on(front: RunningFront) -> None:
    client = await front.connect()
    await client.speak("")
    refused = await client.reply()
    await client.speak("Hi.")
    spoken = await client.reply()
    client.leave()

    assert (refused.status, spoken.status) == (400, 200)


async def test_bytes_that_are_not_http_disturb_nobody(front: RunningFront) -> None:
    client = await front.connect()
    client.writer.write(b"\x16\x03\x01\x02\x00 TLS?\r\n\r\n")
    status, _ = await client.head()
    client.leave()
    spoken, _ = await asyncio.gather(front.speak(), asyncio.sleep(0))

    assert (status, spoken.status) == (400, 200)


async def test_a_not_utf8_body_over_the_wire(front: RunningFront) -> None:
    reply = await front.ask("POST", SPEECH, json.dumps({"input": "é"}, ensure_ascii=False).encode("latin-1"))

    assert reply.json["detail"] == "the body is not UTF-8: wrong byte at position 11"

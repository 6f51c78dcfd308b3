"""The queue in front of the engine."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from cosyvoice_worker.channel import Audio, Beat, Cancel, Done, Failed, FrontMessage, Synthesize
from cosyvoice_worker.metrics import Metrics
from cosyvoice_worker.server import problems
from cosyvoice_worker.server.dispatcher import Dispatcher
from cosyvoice_worker.server.job import Job, Speaker
from cosyvoice_worker.server.lane import Lane
from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.server.problems import Problem
from cosyvoice_worker.server.speech_request import SpeechRequest


class Bench:
    """A dispatcher whose messages to the engine end up in `sent`."""

    def __init__(self, limits: Limits | None = None, *, attached: bool = True) -> None:
        self.sent: list[FrontMessage] = []
        self.dispatcher = Dispatcher(limits or Limits(), Metrics(CollectorRegistry()))
        self.lane = Lane(self.sent.append, Speaker(sample_rate=24000), lambda: None)
        if attached:
            self.dispatcher.attach(self.lane)

    def receive(self, message: Audio | Done | Failed | Beat) -> None:
        self.dispatcher.receive(self.lane, message)

    def submit(self, text: str = "Hello.", *, stream: bool = False) -> Job:
        request = SpeechRequest(input=text, stream=stream)
        return self.dispatcher.submit(
            request, 7, asyncio.get_running_loop().time(), self.dispatcher.limits.request_seconds
        )

    def started(self) -> list[int]:
        return [message.id for message in self.sent if isinstance(message, Synthesize)]


def done(job: Job, *, cancelled: bool = False) -> Done:
    return Done(id=job.id, speech_tokens=3, speech_tokens_sha256="ab", seconds=0.1, cancelled=cancelled)


async def problem_of(job: Job) -> str:
    with pytest.raises(Problem) as caught:
        await job.read()
    return caught.value.kind


async def test_requests_run_one_at_a_time_in_their_order() -> None:
    bench = Bench()
    jobs = [bench.submit() for _ in range(3)]
    orders = [bench.started()]

    for job in jobs:
        bench.receive(done(job))
        orders.append(bench.started())

    assert orders == [[1], [1, 2], [1, 2, 3], [1, 2, 3]]
    assert (bench.dispatcher.in_flight, bench.dispatcher.queued) == (0, 0)


async def test_audio_is_read_in_order_until_the_end() -> None:
    bench = Bench()
    job = bench.submit()
    for seq, s16 in enumerate([b"ab", b"cd"]):
        bench.receive(Audio(id=job.id, seq=seq, s16=s16))
    bench.receive(done(job))

    assert [await job.read() for _ in range(3)] == [b"ab", b"cd", None]


async def test_the_seventeenth_waiting_request_is_refused() -> None:
    bench = Bench()
    for _ in range(17):
        bench.submit()

    with pytest.raises(Problem) as caught:
        bench.submit()

    assert (caught.value.status, caught.value.kind, caught.value.retry_after) == (429, "queue-full", 17)
    assert caught.value.detail == "the queue of 16 requests is full; try again in 17 s"


async def test_a_waiting_request_that_is_cancelled_leaves_its_place() -> None:
    bench = Bench()
    first, second, third = (bench.submit() for _ in range(3))

    bench.dispatcher.cancel(second, problems.client_gone())
    bench.receive(done(first))

    assert bench.started() == [first.id, third.id]
    assert await problem_of(second) == "client-gone"
    assert Cancel(id=second.id) not in bench.sent


async def test_the_slot_of_a_cancelled_request_is_free_when_the_engine_says_so() -> None:
    bench = Bench()
    first, second = bench.submit(), bench.submit()

    bench.dispatcher.cancel(first, problems.client_gone())
    before = bench.started()
    bench.receive(done(first, cancelled=True))

    assert before == [first.id]
    assert bench.sent[1:] == [Cancel(id=first.id), bench.sent[-1]]
    assert bench.started() == [first.id, second.id]


async def test_a_reader_too_slow_for_a_stream_is_cut_and_the_engine_told_to_stop() -> None:
    bench = Bench(Limits(buffered_bytes=10))
    job = bench.submit(stream=True)
    cuts: list[str] = []
    job.on_cut = lambda: cuts.append("cut")

    bench.receive(Audio(id=job.id, seq=0, s16=bytes(10)))
    assert cuts == []
    bench.receive(Audio(id=job.id, seq=1, s16=bytes(2)))

    assert cuts == ["cut"]
    assert bench.sent[-1] == Cancel(id=job.id)
    assert await problem_of(job) == "client-too-slow"


async def test_a_whole_answer_may_be_larger_than_a_stream_s_buffer() -> None:
    bench = Bench(Limits(buffered_bytes=10))
    job = bench.submit()

    bench.receive(Audio(id=job.id, seq=0, s16=bytes(100)))

    assert job.end is None


async def test_a_deadline_ends_waiting_and_running_requests() -> None:
    bench = Bench(Limits(request_seconds=0.01))
    running, waiting = bench.submit(), bench.submit()

    assert [await problem_of(running), await problem_of(waiting)] == ["deadline-passed"] * 2
    assert bench.sent[-1] == Cancel(id=running.id)
    assert bench.dispatcher.queued == 0


@pytest.mark.parametrize(
    ("message", "kind", "status"),
    [
        (Failed(id=1, reason="InvalidConfig", message="no such word", status=400), "synthesis-failed", 400),
        (Failed(id=1, reason="OutOfMemory", message="too long"), "synthesis-failed", 500),
        (Failed(id=1, reason="LoadTimeout", message="late", status=504), "deadline-passed", 504),
        (Done(id=1, speech_tokens=0, speech_tokens_sha256="", seconds=0, cancelled=True), "deadline-passed", 504),
    ],
)
async def test_what_the_engine_ends_a_request_with_is_told(message: Failed | Done, kind: str, status: int) -> None:
    bench = Bench()
    job = bench.submit()

    bench.receive(message)

    assert isinstance(job.end, Problem)
    assert (job.end.kind, job.end.status) == (kind, status)


async def test_messages_about_requests_that_are_over_change_nothing() -> None:
    bench = Bench()
    first = bench.submit()
    bench.receive(done(first))
    second = bench.submit()

    for message in (Audio(id=first.id, seq=9, s16=b"xx"), Beat(id=first.id, step=9), done(first)):
        bench.receive(message)

    assert (second.end, second.buffered) == (None, 0)
    assert bench.dispatcher.in_flight == 1


async def test_without_the_engine_the_running_request_can_be_ended_and_the_others_kept() -> None:
    bench = Bench()
    running, waiting = bench.submit(), bench.submit()

    bench.dispatcher.detach(bench.lane, problems.engine_died(1))
    kept = waiting.end
    bench.dispatcher.end_waiting(problems.stopping(1))

    assert kept is None
    assert [await problem_of(running), await problem_of(waiting)] == ["engine-died", "stopping"]
    assert bench.started() == [running.id]


async def test_requests_wait_for_an_engine_that_is_still_to_come() -> None:
    bench = Bench(attached=False)
    job = bench.submit()
    before = bench.dispatcher.queued

    bench.dispatcher.attach(bench.lane)

    assert before == 1
    assert bench.started() == [job.id]


async def test_a_request_stays_with_the_engine_that_has_it_when_another_takes_over() -> None:
    bench = Bench()
    running, waiting = bench.submit(), bench.submit()
    taken_over: list[FrontMessage] = []
    successor = Lane(taken_over.append, Speaker(sample_rate=16000, version="v2"), lambda: None)

    bench.dispatcher.attach(successor)
    late = bench.submit()
    orders = [bench.started(), [message.id for message in taken_over if isinstance(message, Synthesize)]]
    depth = (bench.dispatcher.in_flight, bench.dispatcher.queued)
    bench.dispatcher.cancel(running, problems.client_gone())
    bench.receive(done(running, cancelled=True))

    assert orders == [[running.id], [waiting.id]]
    assert depth == (2, 1)
    assert bench.sent[-1] == Cancel(id=running.id)
    assert bench.lane.idle.is_set()
    assert [job.sample_rate for job in (running, waiting, late)] == [24000, 16000, 0]


async def test_an_engine_that_is_gone_takes_only_its_own_request_with_it() -> None:
    bench = Bench()
    first = bench.submit()
    successor = Lane(bench.sent.append, Speaker(sample_rate=24000), lambda: None)
    bench.dispatcher.attach(successor)
    second = bench.submit()

    bench.dispatcher.detach(bench.lane, problems.engine_died(1))
    bench.dispatcher.receive(successor, done(second))

    assert await problem_of(first) == "engine-died"
    assert await second.read() is None


async def test_only_a_changed_step_is_progress() -> None:
    bench = Bench()
    job = bench.submit()
    moved = [bench.lane.moved_at]

    for step in (1, 1, 2):
        await asyncio.sleep(0.002)
        bench.receive(Beat(id=job.id, step=step))
        moved.append(bench.lane.moved_at)

    assert moved[0] < moved[1] == moved[2] < moved[3]

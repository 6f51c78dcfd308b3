"""How the front looks after engine processes, with engines that do what a script says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from cosyvoice_worker.channel import Shutdown
from cosyvoice_worker.metrics import Metrics
from cosyvoice_worker.outcome import Outcome, Reason
from cosyvoice_worker.server.dispatcher import Dispatcher
from cosyvoice_worker.server.engine_life import Patience
from cosyvoice_worker.server.job import Job
from cosyvoice_worker.server.lane import Lane
from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.server.problems import Problem
from cosyvoice_worker.server.speech_request import SpeechRequest
from cosyvoice_worker.server.state import FrontState, Identity
from cosyvoice_worker.server.supervisor import Supervisor
from tests.unit.server import fake_engine
from tests.unit.server.fake_engine import FakeEngine, FakeLauncher, Script, version

PATIENCE = Patience(kill_seconds=0.2, tick_seconds=0.01)


class Front:
    """A supervisor over fake engines."""

    def __init__(self, *scripts: Script, load_seconds: float = 60, lazy: bool = False) -> None:
        self.launcher = FakeLauncher(*scripts)
        self.state = FrontState(identity=Identity(model="narrator"), lazy=lazy)
        self.dispatcher = Dispatcher(Limits(), Metrics(CollectorRegistry()))
        self.oom_kills = 0
        self.supervisor = Supervisor(
            self.launcher,
            version(load_seconds=load_seconds),
            self.state,
            self.dispatcher,
            PATIENCE,
            on_switch=lambda _: None,
            count_oom_kills=lambda: self.oom_kills,
        )

    @property
    def lane(self) -> Lane:
        life = self.supervisor.serving
        assert life is not None
        assert life.lane is not None
        return life.lane

    def start(self) -> asyncio.Task[Outcome | None]:
        first = None if self.state.lazy else self.launcher(self.supervisor.version)
        return asyncio.get_running_loop().create_task(self.supervisor.run(first))

    def submit(self, text: str = "Hello.", *, stream: bool = False) -> Job:
        request = SpeechRequest(input=text, stream=stream)
        return self.dispatcher.submit(
            request, 7, asyncio.get_running_loop().time(), self.dispatcher.limits.request_seconds
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - what is waited for are plain values of the product's state
            await asyncio.sleep(0.002)

    async def until_ready(self, engines: int = 1) -> None:
        await self.until(lambda: self.state.engine_ready and len(self.launcher.engines) == engines)


@asynccontextmanager
async def serving(*scripts: Script, lazy: bool = False) -> AsyncIterator[Front]:
    front = Front(*scripts, lazy=lazy)
    running = front.start()
    if not lazy:
        await front.until_ready()
    yield front
    front.supervisor.kill()
    assert await running is None


async def speech_of(job: Job) -> bytes:
    audio = b""
    while (chunk := await job.read()) is not None:
        audio += chunk
    return audio


async def kind_of(job: Job) -> str:
    with pytest.raises(Problem) as caught:
        await speech_of(job)
    return caught.value.kind


async def test_an_engine_that_loads_makes_the_front_ready_and_speaks() -> None:
    async with serving(fake_engine.good) as front:
        speech = await speech_of(front.submit("Hi."))

        assert speech == fake_engine.samples("Hi.")
        assert (front.state.phase, front.state.ready, front.state.device) == ("Ready", True, "cpu")
        assert front.state.load == fake_engine.READY.load


async def test_the_first_engine_s_failure_is_the_front_s_end() -> None:
    front = Front(fake_engine.refusing)

    outcome = await front.start()

    assert outcome is not None
    assert (outcome.exit_code, outcome.message, outcome.tensor) == (66, "llm.pt lacks x", "x")
    assert (front.state.phase, front.state.ready, front.state.failure) == ("Failed", False, outcome)
    assert len(front.launcher.engines) == 1


@pytest.mark.parametrize(("ooms", "reason"), [(0, Reason.ENGINE_DIED), (1, Reason.OUT_OF_MEMORY)])
async def test_a_first_engine_killed_while_loading_tells_whether_memory_was_the_cause(
    ooms: int, reason: Reason
) -> None:
    front = Front(fake_engine.never_ready)
    running = front.start()
    await front.until(lambda: front.state.phase == "Map")
    front.oom_kills = ooms
    front.launcher.engines[0].kill()

    outcome = await running

    assert outcome is not None
    assert outcome.reason is reason


async def test_the_breaker_ends_a_load_that_takes_too_long() -> None:
    front = Front(fake_engine.never_ready, load_seconds=0.05)

    outcome = await front.start()

    assert outcome is not None
    assert (outcome.exit_code, outcome.phase.value) == (72, "Map")
    assert outcome.message == (
        "the model was not loaded within 0.05 s: it is still in phase Map; the engine was killed"
    )


async def test_an_engine_that_dies_later_is_replaced_and_its_requests_are_told_to_come_again() -> None:
    async with serving(fake_engine.dying_after(1), fake_engine.good) as front:
        await speech_of(front.submit())
        interrupted, waiting = front.submit(), front.submit()

        assert [await kind_of(interrupted), await kind_of(waiting)] == ["engine-died"] * 2
        await front.until_ready(engines=2)
        assert await speech_of(front.submit("Hi.")) == fake_engine.samples("Hi.")
        assert front.state.restarts == 1


async def test_while_an_engine_is_replaced_the_front_is_not_ready() -> None:
    async with serving(fake_engine.dying_after(0), fake_engine.never_ready) as front:
        assert await kind_of(front.submit()) == "engine-died"
        await front.until(lambda: front.state.phase == "Map")

        assert not front.state.ready
        assert front.state.failure is not None
        assert front.state.failure.message.endswith("with exit code 1 and said no reason")


async def test_a_started_stream_is_cut_when_its_engine_dies() -> None:
    async with serving(fake_engine.dying_in_mid_stream, fake_engine.good) as front:
        job = front.submit(stream=True)
        first = await job.read()

        assert first == fake_engine.samples("ab")
        assert await kind_of(job) == "engine-died"


async def test_three_deaths_end_the_front() -> None:
    front = Front(fake_engine.dying_after(0))
    running = front.start()
    for engines in (1, 2, 3):
        await front.until_ready(engines)
        assert await kind_of(front.submit()) == "engine-died"

    outcome = await running

    assert outcome is not None
    assert outcome.exit_code == 73
    assert outcome.message.startswith("the engine process ended 3 times within 10 minutes; the last time: ")
    assert len(front.launcher.engines) == 3


async def test_the_watchdog_replaces_an_engine_that_makes_no_step() -> None:
    async def stuck(engine: FakeEngine) -> None:
        await fake_engine.silent(engine)

    async with serving(stuck, fake_engine.good) as front:
        job = front.submit()
        front.lane.moved_at -= 31

        assert await kind_of(job) == "engine-died"
        await front.until_ready(engines=2)
        assert front.state.restarts == 1


async def test_an_idle_engine_is_left_alone() -> None:
    async with serving(fake_engine.silent) as front:
        front.lane.moved_at = -1e9
        await asyncio.sleep(0.05)

        assert front.state.engine_ready


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            b"\xff\xff\xff\xff",
            "the engine was killed: it sent a message of 4,294,967,295 bytes, over the limit of 8,388,608",
        ),
        (b"\x00\x00\x00\x01\x00", "the engine was killed: it sent a message that cannot be decoded: "),
    ],
)
async def test_an_engine_that_cannot_be_understood_is_killed(data: bytes, words: str) -> None:
    async def babbling(engine: FakeEngine) -> None:
        await engine.write(data)
        await asyncio.Event().wait()

    outcome = await Front(babbling).start()

    assert outcome is not None
    assert outcome.exit_code == 73
    assert outcome.message.startswith(words)


async def test_a_process_that_the_kernel_does_not_give_ends_the_front() -> None:
    front = Front(fake_engine.dying_after(0))
    running = front.start()
    await front.until_ready()

    front.launcher.refuse_with(OSError(11, "Resource temporarily unavailable"))
    assert await kind_of(front.submit()) == "engine-died"
    outcome = await running

    assert outcome is not None
    assert (outcome.exit_code, outcome.message) == (
        73,
        "the engine process cannot be started: [Errno 11] Resource temporarily unavailable",
    )


async def test_a_second_engine_gives_way_when_the_first_one_runs_out_of_memory_beside_it() -> None:
    front = Front(fake_engine.good, fake_engine.never_ready, fake_engine.good)
    running = front.start()
    await front.until_ready()
    second = front.supervisor.start_beside(version("b1b2b3b4b5"), None, lambda _: None)
    front.oom_kills = 1
    front.launcher.engines[0].kill()

    death = await second.ended
    await front.until_ready(engines=3)
    front.supervisor.kill()

    assert await running is None
    assert death.killed is not None
    assert death.killed.reason is Reason.OUT_OF_MEMORY
    assert death.killed.message.startswith(
        "no room for a second engine: the one that serves ran out of memory beside it: the kernel killed the engine "
    )


async def test_a_kill_for_memory_is_attributed_to_one_engine_only() -> None:
    front = Front(fake_engine.good, fake_engine.never_ready, fake_engine.good)
    running = front.start()
    await front.until_ready()
    second = front.supervisor.start_beside(version("b1b2b3b4b5"), None, lambda _: None)
    await front.until(lambda: second.phase == "Map")
    front.oom_kills = 1
    front.launcher.engines[1].kill()
    death = await second.ended
    front.launcher.engines[0].kill()
    await front.until(lambda: front.state.restarts == 1)
    restarts = front.dispatcher.metrics.engine_restarts
    front.supervisor.kill()
    await running

    assert death.oom_killed
    assert [sample.labels["reason"] for sample in next(iter(restarts.collect())).samples] == ["EngineDied"]


async def test_stopping_asks_the_engine_first() -> None:
    async with serving(fake_engine.good) as front:
        await front.supervisor.stop()

        assert front.launcher.engines[0].received == [Shutdown()]


async def test_without_preload_the_engine_is_started_by_the_first_request() -> None:
    async with serving(fake_engine.good, lazy=True) as front:
        before = (front.state.ready, len(front.launcher.engines))
        job = front.submit("Hi.")
        front.supervisor.want_engine()

        assert before == (True, 0)
        assert await speech_of(job) == fake_engine.samples("Hi.")

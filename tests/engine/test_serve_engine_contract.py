"""What the front relies on in any engine: the real one on the tiny model, and the fake that the front's tests use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cosyvoice_worker.channel import (
    Audio,
    Beat,
    Cancel,
    Done,
    EngineMessage,
    FrontMessage,
    Hello,
    PhaseChanged,
    Ready,
    Shutdown,
    Synthesize,
)
from cosyvoice_worker.server.engine_client import EngineClient
from cosyvoice_worker.server.engine_life import EngineProcess
from cosyvoice_worker.server.process import ChildEngine
from cosyvoice_worker.server.reaper import Reaper
from cosyvoice_worker.server.spawn import spawn_engine
from tests.engine.engine_process import stage_model, write_config
from tests.unit.server.fake_engine import FakeEngine, speak

SHORT = "Hello there."
LONG = SHORT * 100


async def obliging(engine: FakeEngine) -> None:
    """Speak short texts, and go on with long ones until told to stop."""
    await engine.load()
    while True:
        request = await engine.request()
        if request.text == LONG:
            await engine.cancelled(request)
        else:
            await speak(engine, request)


class Conversation:
    """An engine that is ready, and what it says."""

    def __init__(self, engine: EngineProcess, client: EngineClient) -> None:
        self.engine = engine
        self.client = client
        self.heard: list[EngineMessage] = []
        self._messages = client.messages()

    async def until(self, wanted: Callable[[EngineMessage], bool]) -> list[EngineMessage]:
        """Everything up to and with the first message that is wanted."""
        before = len(self.heard)
        async for message in self._messages:
            self.heard.append(message)
            if wanted(message):
                return self.heard[before:]
        raise AssertionError(f"the engine hung up after {self.heard[before:]}")

    async def end_of(self, request: Synthesize) -> list[EngineMessage]:
        self.client.send(request)
        return await self.until(lambda message: isinstance(message, Done) and message.id == request.id)


def request(number: int, text: str = SHORT, *, stream: bool = False) -> Synthesize:
    return Synthesize(id=number, text=text, voice=None, stream=stream, seed=3, deadline_seconds=300)


@pytest.fixture(scope="module")
def staged(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("staged")
    stage_model(tiny_model_dir, root)
    write_config(root / "model.json")
    return root


@asynccontextmanager
async def real(root: Path) -> AsyncIterator[EngineProcess]:
    reaper = Reaper(orphans=False)
    reaper.start()
    options = {"--config": root / "model.json", "--root": root, "--voices": root / "no-voices"}
    engine = ChildEngine(spawn_engine([str(word) for option in options.items() for word in option]), reaper)
    yield engine
    engine.kill()
    await engine.wait()
    reaper.stop()


@asynccontextmanager
async def fake(_root: Path) -> AsyncIterator[EngineProcess]:
    engine = FakeEngine(obliging)
    yield engine
    engine.kill()
    await engine.wait()


@pytest.fixture(params=[fake, real], ids=["fake", "real"])
async def talk(request: pytest.FixtureRequest, staged: Path) -> AsyncIterator[Conversation]:
    async with request.param(staged) as engine:
        conversation = Conversation(engine, await EngineClient.connect(engine.sock))
        await conversation.until(lambda message: isinstance(message, Ready))
        yield conversation
        await conversation.client.close()


async def test_an_engine_keeps_the_contract(talk: Conversation) -> None:
    """One long conversation, as an engine takes long to load."""
    loading = [message for message in talk.heard if not isinstance(message, Beat)]
    ready = loading[-1]
    assert isinstance(loading[0], Hello)
    assert loading[0].pid == talk.engine.pid
    assert [m.name for m in loading if isinstance(m, PhaseChanged)] == ["Import", "Map", "Build", "WarmUp"]
    assert isinstance(ready, Ready)
    assert set(ready.load) == {"import", "map", "build", "warmUp", "total"}
    assert ready.sample_rate > 0

    for number, stream in ((1, False), (2, True)):
        spoken = await talk.end_of(request(number, stream=stream))
        pieces = [message for message in spoken if isinstance(message, Audio)]
        assert {message.id for message in spoken if not isinstance(message, Hello | PhaseChanged | Ready)} == {number}
        assert [piece.seq for piece in pieces] == list(range(len(pieces)))
        assert pieces
        assert all(piece.s16 and len(piece.s16) % 2 == 0 for piece in pieces)
        end = spoken[-1]
        assert isinstance(end, Done)
        assert (end.cancelled, end.speech_tokens > 0, len(end.speech_tokens_sha256)) == (False, True, 64)

    talk.client.send(request(3, LONG, stream=True))
    talk.client.send(request(4))
    for late in (Cancel(id=1), Cancel(id=99), Cancel(id=3)):
        talk.client.send(late)
    cancelled = (await talk.until(lambda message: isinstance(message, Done)))[-1]
    assert isinstance(cancelled, Done)
    assert (cancelled.id, cancelled.cancelled) == (3, True)
    after = (await talk.until(lambda message: isinstance(message, Done)))[-1]
    assert isinstance(after, Done)
    assert (after.id, after.cancelled) == (4, False)


@pytest.mark.parametrize("message", [Shutdown(), None], ids=["told to", "alone"])
async def test_an_engine_ends_with_0_when_it_is_told_to_or_left_alone(
    talk: Conversation, message: FrontMessage | None
) -> None:
    if message is None:
        await talk.client.close()
    else:
        talk.client.send(message)

    assert await talk.engine.wait() == 0


async def test_a_killed_engine_hangs_up_and_tells_the_signal(talk: Conversation) -> None:
    talk.engine.kill()

    assert await talk.engine.wait() == -9
    with pytest.raises(AssertionError, match="hung up"):
        await talk.until(lambda _: False)
    await asyncio.sleep(0)

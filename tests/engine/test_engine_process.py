"""The engine as its own process: what it says while it loads, how it serves, how it ends."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cosyvoice_worker import channel
from cosyvoice_worker.channel import Audio, Beat, Cancel, Done, Failed, Hello, PhaseChanged, Ready, Synthesize
from cosyvoice_worker.staging import locks
from tests.engine.engine_process import EngineProcess, stage_model, write_config

TEXT = "Hello there, this is a short test, and it goes on."


@pytest.fixture(scope="module")
def root(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tmpfs")
    stage_model(tiny_model_dir, root)
    return root


@pytest.fixture(scope="module")
def engine(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """One that is ready, for all the requests here: it keeps nothing of one for the next."""
    folder = tmp_path_factory.mktemp("engine")
    with EngineProcess(root, write_config(folder / "model.json"), folder / "voices") as engine:
        engine.until(Ready)
        yield engine


def speak(engine: EngineProcess, number: int, text: str = TEXT, **fields: object) -> tuple[list[Audio], Done | Failed]:
    """A request's audio messages and its last message."""
    request = {"voice": None, "stream": False, "seed": 7, **fields}
    engine.send(Synthesize(id=number, text=text, **request))
    audio: list[Audio] = []
    while not isinstance(message := engine.until(Audio, Done, Failed), Done | Failed):
        audio.append(message)
    return audio, message


def test_it_says_hello_first_then_every_phase_then_ready(engine):
    told = [message for message in engine.messages if isinstance(message, Hello | PhaseChanged | Ready)]

    assert told[0] == Hello(pid=engine.process.pid)
    assert [phase.name for phase in told[1:-1]] == ["Import", "Map", "Build", "WarmUp"]
    ready = told[-1]
    assert (ready.sample_rate, ready.device, ready.dtype, ready.voices) == (24000, "cpu", "float32", [])
    assert list(ready.load) == ["import", "map", "build", "warmUp", "total"]
    assert ready.load["total"] == pytest.approx(sum(ready.load.values()) - ready.load["total"], abs=0.01)
    assert ready.slowest_step > 0


def test_it_holds_a_lock_on_the_version_it_maps(engine, root):
    (version,) = (path for path in root.iterdir() if len(path.name) == 64)

    with locks.exclusive_or_not(version) as held:
        assert not held


def test_audio_comes_in_numbered_pieces_of_bounded_size(engine):
    audio, done = speak(engine, 1)

    assert [message.seq for message in audio] == list(range(len(audio)))
    assert {message.id for message in (*audio, done)} == {1}
    assert max(len(message.s16) for message in audio) <= 64_000
    assert sum(len(message.s16) for message in audio) == done.speech_tokens * 960 * 2


def test_the_same_seed_gives_the_same_audio_whatever_was_spoken_between(engine):
    first, first_done = speak(engine, 2)
    speak(engine, 3, "Something else.", seed=8, stream=True)

    again, again_done = speak(engine, 4)

    assert [message.s16 for message in first] == [message.s16 for message in again]
    assert first_done.speech_tokens_sha256 == again_done.speech_tokens_sha256
    assert len(first_done.speech_tokens_sha256) == len(hashlib.sha256().hexdigest())


def test_a_stream_speaks_the_same_tokens_and_sends_its_first_audio_before_the_last_token(engine):
    _, whole = speak(engine, 5)
    before = len(engine.messages)

    audio, streamed = speak(engine, 6, stream=True)

    assert streamed.speech_tokens_sha256 == whole.speech_tokens_sha256
    assert len(audio) > 1
    kinds = [type(message) for message in engine.messages[before:]]
    assert Beat in kinds[kinds.index(Audio) :]


def test_beats_of_a_request_count_upwards(engine):
    before = len(engine.messages)
    speak(engine, 7)

    steps = [beat.step for beat in engine.messages[before:] if isinstance(beat, Beat)]

    assert steps
    assert steps == sorted(set(steps))


def test_cancelling_ends_a_request_in_its_middle(engine):
    engine.send(Synthesize(id=8, text=TEXT * 20, voice=None, stream=True, seed=1))
    engine.until(Audio)
    engine.send(Cancel(id=8))

    done = engine.until(Done, Failed)

    assert isinstance(done, Done)
    assert (done.id, done.cancelled) == (8, True)


def test_a_request_cancelled_while_it_waits_is_never_begun(engine):
    engine.send(Synthesize(id=9, text=TEXT, voice=None, stream=False, seed=1))
    engine.send(Synthesize(id=10, text=TEXT, voice=None, stream=False, seed=1))
    engine.send(Cancel(id=10))
    engine.until(Done)
    before = len(engine.messages)

    done = engine.until(Done)

    assert (done.id, done.cancelled) == (10, True)
    assert len(engine.messages) == before + 1


def test_cancelling_what_has_ended_does_nothing(engine):
    speak(engine, 11)
    engine.send(Cancel(id=11))

    _, done = speak(engine, 12)

    assert not done.cancelled


def test_a_deadline_ends_a_request(engine):
    _, failed = speak(engine, 13, TEXT * 20, deadline_seconds=0.3)

    assert failed == Failed(
        id=13, reason="DeadlinePassed", message="the request was not finished within 0.3 s", status=504
    )


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"text": "?!"}, 400, "the text has no letter or digit: there is nothing to speak"),
        ({"voice": "nobody"}, 404, "there is no voice 'nobody'; there are: none"),
        ({"speed": 2.0, "stream": True}, 400, "speed 2 cannot be streamed: leave it at 1 or do not stream"),
    ],
)
def test_a_request_that_cannot_be_spoken_is_refused_and_the_next_one_is_served(engine, fields, status, message):
    audio, failed = speak(engine, 14, **fields)

    assert (audio, failed.status, failed.message) == ([], status, message)
    assert isinstance(speak(engine, 15)[1], Done)


def test_ctrl_c_in_a_terminal_is_left_to_the_front(engine):
    engine.process.send_signal(signal.SIGINT)

    _, done = speak(engine, 15)

    assert isinstance(done, Done)


def test_shutdown_ends_it_with_0_even_in_the_middle_of_a_request(root, tmp_path):
    with EngineProcess(root, write_config(tmp_path / "model.json"), tmp_path / "voices") as engine:
        engine.until(Ready)
        engine.send(Synthesize(id=1, text=TEXT * 20, voice=None, stream=True, seed=1))
        engine.until(Audio)
        engine.send(channel.Shutdown())

        assert engine.process.wait(60) == 0


def test_it_ends_when_the_front_hangs_up_while_it_loads(root, tmp_path):
    with EngineProcess(root, write_config(tmp_path / "model.json"), tmp_path / "voices") as engine:
        engine.until(Hello)
        engine.sock.close()

        assert engine.process.wait(60) == 0


def test_memory_that_is_refused_ends_the_load_with_71(root, tmp_path):
    config = write_config(tmp_path / "model.json")
    with EngineProcess(root, config, tmp_path / "voices", COSYVOICE_ENGINE_MEMORY_BYTES=str(2**20)) as engine:
        failed, code = engine.until(Failed), engine.process.wait(60)

    assert (failed.reason, failed.phase, code) == ("OutOfMemory", "WarmUp", 71)
    assert failed.message.startswith("warm-up of 'Hello, this is a warm-up.' with the built-in voice, not streaming: ")


def test_a_process_killed_by_the_kernel_says_nothing_more(root, tmp_path):
    with EngineProcess(root, write_config(tmp_path / "model.json"), tmp_path / "voices") as engine:
        engine.until(Hello)
        engine.process.kill()

        assert engine.process.wait(60) == -signal.SIGKILL

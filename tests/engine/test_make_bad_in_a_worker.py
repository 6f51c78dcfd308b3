"""Bad directories that an engine cannot tell of itself: the front of a whole worker does."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosyvoice_worker.channel import Beat, PhaseChanged
from cosyvoice_worker.faults.kit import FAULTS, make_bad
from tests.engine.engine_process import EngineProcess, stage_model, write_config
from tests.engine.serving_worker import ServingWorker


@pytest.mark.parametrize("name", ["slow-load", "hang-in-load"])
def test_a_load_that_takes_too_long_is_ended_by_the_circuit_breaker(
    tiny_model_dir: Path, tmp_path: Path, name: str
) -> None:
    make_bad(FAULTS[name], tiny_model_dir, tmp_path / "bad")

    with ServingWorker(tmp_path, "--model", tmp_path / "bad", "--load-seconds", 5) as worker:
        code = worker.end()
        words = worker.last_words()

    assert (code, words["reason"], words["phase"], words["retryable"]) == (72, "LoadTimeout", "Map", True)
    assert words["message"].startswith("the model was not loaded within 5 s: it is still in phase ")
    assert words["expected"] == "at most 5 s"


def test_a_warm_up_that_takes_too_long_goes_on_and_on(tiny_model_dir: Path, tmp_path: Path) -> None:
    """The engine alone: it gets as far as warming up, and after many steps is nowhere near the end."""
    make_bad(FAULTS["hang-in-warm-up"], tiny_model_dir, tmp_path / "bad")
    stage_model(tmp_path / "bad", tmp_path / "root")

    with EngineProcess(tmp_path / "root", write_config(tmp_path / "model.json"), tmp_path / "voices") as engine:
        steps = [engine.until(Beat).step for _ in range(4)]
        phases = [message.name for message in engine.messages if isinstance(message, PhaseChanged)]

    assert phases[-1] == "WarmUp"
    # 0.4 s of warm-up at 3,600 tokens a second are 1,440 steps for the first of two trials.
    assert steps[-1] < 144


@pytest.mark.long
def test_a_warm_up_that_takes_too_long_is_ended_by_the_circuit_breaker(tiny_model_dir: Path, tmp_path: Path) -> None:
    make_bad(FAULTS["hang-in-warm-up"], tiny_model_dir, tmp_path / "bad")

    with ServingWorker(tmp_path, "--model", tmp_path / "bad", "--load-seconds", 40) as worker:
        code = worker.end()
        words = worker.last_words()

    assert (code, words["reason"], words["phase"], words["retryable"]) == (72, "LoadTimeout", "WarmUp", True)
    assert words["message"] == (
        "the model was not loaded within 40 s: it is still in phase WarmUp; the engine was killed"
    )


def test_a_load_that_crashes_the_engine_is_told_by_its_signal(tiny_model_dir: Path, tmp_path: Path) -> None:
    make_bad(FAULTS["crash-by-signal"], tiny_model_dir, tmp_path / "bad")

    with ServingWorker(tmp_path, "--model", tmp_path / "bad") as worker:
        code = worker.end()
        words = worker.last_words()

    assert (code, words["reason"], words["phase"]) == (73, "EngineDied", "Map")
    assert words["message"].startswith("the engine process was killed in phase Map after ")
    assert words["message"].endswith(" s by SIGSEGV")
    assert words["actual"] == "SIGSEGV"


@pytest.mark.long
def test_a_slow_load_ends_well_where_it_may_take_its_time(tiny_model_dir: Path, tmp_path: Path) -> None:
    make_bad(FAULTS["slow-load"], tiny_model_dir, tmp_path / "slow")

    with ServingWorker(tmp_path, "--model", tmp_path / "slow") as worker:
        worker.until_ready()
        reply = worker.speak("Hello.", seed=1)

    assert reply.status_code == 200

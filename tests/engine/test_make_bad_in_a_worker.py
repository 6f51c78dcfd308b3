"""Bad directories that an engine cannot tell of itself: the front of a whole worker does."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosyvoice_worker.faults.kit import FAULTS, make_bad
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

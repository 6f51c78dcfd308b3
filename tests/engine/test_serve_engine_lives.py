"""The whole worker when its engine or itself is ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.engine.engine_process import stage_model, write_config
from tests.engine.serving_worker import ServingWorker

TEXT = "Hello there."


@pytest.fixture(scope="module")
def staged(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, staged once for all workers here."""
    root = tmp_path_factory.mktemp("staged")
    stage_model(tiny_model_dir, root)
    return root


@pytest.fixture
def worker(staged: Path, tmp_path: Path) -> Iterator[ServingWorker]:
    config = write_config(tmp_path / "model.json")
    with ServingWorker(tmp_path, "--config", config, "--root", staged) as running:
        yield running


def test_readiness_comes_after_every_phase_and_liveness_before(worker: ServingWorker) -> None:
    worker.until_answering()
    first = worker.api.get("/health")
    phases = [first.json()["phase"]]
    while worker.api.get("/health").status_code != 200:
        phases.append(worker.status()["phase"])

    order = ["Start", "Import", "Map", "Build", "WarmUp", "Ready"]
    assert first.status_code == 503
    assert phases == sorted(phases, key=order.index)


def test_a_killed_engine_is_replaced_in_place_and_its_stream_cut(worker: ServingWorker) -> None:
    worker.until_ready()
    before = worker.engine_pid()
    with worker.api.stream("POST", "/v1/audio/speech", json={"input": TEXT * 50, "stream": True}) as response:
        chunks = response.iter_bytes()
        next(chunks)
        worker.signal_engine(signal.SIGKILL)
        with pytest.raises(httpx.RemoteProtocolError):
            list(chunks)

    worker.until(lambda: worker.status()["ready"])
    status = worker.status()
    assert status["engine"]["restarts"] == 1
    assert status["engine"]["pid"] != before
    assert worker.speak(TEXT).status_code == 200
    assert 'cosyvoice_engine_restarts_total{reason="EngineDied"} 1.0' in worker.admin.get("/metrics").text


def test_asked_to_stop_it_finishes_what_it_has_and_says_so(worker: ServingWorker) -> None:
    worker.until_ready()
    with worker.api.stream("POST", "/v1/audio/speech", json={"input": TEXT, "stream": True}) as response:
        chunks = response.iter_bytes()
        next(chunks)
        worker.process.send_signal(signal.SIGTERM)
        worker.until(lambda: worker.health() == 503)
        rest = b"".join(chunks)

    assert rest
    assert worker.end() == 0
    assert worker.last_words()["reason"] == "Completed"


def test_asked_to_stop_while_it_loads_it_stops(worker: ServingWorker) -> None:
    worker.until_answering()
    worker.until(lambda: worker.status()["phase"] != "Start")
    worker.process.send_signal(signal.SIGTERM)

    assert worker.end() == 0


def test_asked_to_stop_before_anything_is_served_it_stops(worker: ServingWorker) -> None:
    worker.until_answering()
    worker.process.send_signal(signal.SIGTERM)

    assert worker.end() == 0


def test_an_engine_that_hangs_while_loading_is_ended_by_the_breaker(staged: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path / "model.json", loadTimeoutSeconds=2)
    with ServingWorker(tmp_path, "--config", config, "--root", staged) as worker:
        worker.until_answering()
        worker.until(lambda: worker.status()["engine"]["pid"] is not None)
        worker.signal_engine(signal.SIGSTOP)

        assert worker.end() == 72
        words = worker.last_words()

    assert (words["reason"], words["retryable"]) == ("LoadTimeout", True)
    assert words["message"].startswith("the model was not loaded within 2 s: it is still in phase ")


def test_without_preload_it_is_ready_before_anything_is_loaded(staged: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path / "model.json", preload=False)
    with ServingWorker(tmp_path, "--config", config, "--root", staged) as worker:
        worker.until_ready()
        before = worker.status()
        reply = worker.speak(TEXT)

        assert (before["ready"], before["phase"], before["engine"]["pid"]) == (True, "Start", None)
        assert reply.status_code == 200


def test_a_deadline_that_is_too_short_is_a_504(tiny_model_dir: Path, tmp_path: Path) -> None:
    with ServingWorker(tmp_path, "--model", tiny_model_dir, "--request-seconds", "0.05") as worker:
        worker.until_ready()
        reply = worker.speak(TEXT * 20)

        assert reply.status_code == 504
        worker.until(lambda: worker.status()["engine"]["inFlight"] == 0)

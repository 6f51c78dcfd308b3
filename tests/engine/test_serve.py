"""The whole worker with the tiny model, from the outside."""

from __future__ import annotations

import array
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cosyvoice_worker.wav import HEADER_BYTES, wav_header
from tests.engine.engine_process import stage_model, write_config
from tests.engine.serving_worker import ServingWorker

TEXT = "The quick brown fox."


def samples(wav: bytes) -> array.array[int]:
    return array.array("h", wav[HEADER_BYTES:])


@pytest.fixture(scope="module")
def worker(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServingWorker]:
    scratch = tmp_path_factory.mktemp("serve")
    stage_model(tiny_model_dir, scratch / "root")
    config = write_config(scratch / "model.json")
    with ServingWorker(scratch, "--config", config, "--root", scratch / "root") as running:
        running.until_ready()
        yield running


def test_the_status_tells_what_is_served(worker: ServingWorker) -> None:
    status = worker.status()

    assert (status["model"], status["version"], status["revision"]) == ("narrator", "v1", "3f9a1c0b7d")
    assert (status["phase"], status["ready"], status["device"], status["dtype"]) == ("Ready", True, "cpu", "float32")
    assert status["digest"].startswith("sha256:")
    assert set(status["load"]) == {"import", "map", "build", "warmUp", "total"}
    assert status["engine"]["restarts"] == 0
    assert status["staged"]["bytes"] > 1_000_000


def test_speech_is_what_synthesize_says_without_a_server(
    worker: ServingWorker, tiny_model_dir: Path, tmp_path: Path
) -> None:
    served = worker.speak(TEXT, seed=5)
    options = ["--model", tiny_model_dir, "--text", TEXT, "--seed", "5", "--out", tmp_path / "out.wav", "--json"]
    command = [sys.executable, "-m", "cosyvoice_worker", "synthesize", *map(str, options)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    report = json.loads(ran.stdout)

    assert served.headers["x-cosyvoice-speech-tokens-sha256"] == report["speechTokensSha256"]
    assert int(served.headers["x-cosyvoice-speech-tokens"]) == report["speechTokens"]
    assert len(served.content) == HEADER_BYTES + 2 * report["samples"]
    pairs = zip(samples(served.content), samples((tmp_path / "out.wav").read_bytes()), strict=True)
    assert max(abs(one - other) for one, other in pairs) <= 1


def test_the_same_seed_gives_the_same_speech_and_the_told_seed_gives_it_again(worker: ServingWorker) -> None:
    first = worker.speak(TEXT)
    again = worker.speak(TEXT, seed=int(first.headers["x-cosyvoice-seed"]))

    assert again.content == first.content


def test_a_stream_has_the_samples_of_its_tokens(worker: ServingWorker) -> None:
    with worker.api.stream("POST", "/v1/audio/speech", json={"input": TEXT, "seed": 5, "stream": True}) as response:
        body = b"".join(response.iter_bytes())
        rate = int(response.headers["x-cosyvoice-sample-rate"])

    tokens = int(worker.speak(TEXT, seed=5).headers["x-cosyvoice-speech-tokens"])
    assert body[:HEADER_BYTES] == wav_header(rate, None)
    assert len(body) - HEADER_BYTES == 2 * tokens * rate // 25


def test_requests_at_once_are_answered_one_after_the_other(worker: ServingWorker) -> None:
    alone = worker.speak(TEXT, seed=1).content
    replies: list[httpx.Response] = []
    threads = [threading.Thread(target=lambda: replies.append(worker.speak(TEXT, seed=1))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [reply.content for reply in replies] == [alone] * 5


def test_a_client_that_leaves_does_not_keep_the_engine(worker: ServingWorker) -> None:
    with worker.api.stream("POST", "/v1/audio/speech", json={"input": TEXT * 50, "stream": True}) as response:
        next(response.iter_bytes())

    worker.until(lambda: worker.status()["engine"]["inFlight"] == 0)
    assert worker.speak(TEXT, seed=1).status_code == 200


def test_an_unknown_voice_is_refused(worker: ServingWorker) -> None:
    reply = worker.speak(TEXT, voice="nobody")

    assert (reply.status_code, reply.json()["detail"]) == (404, "there is no voice 'nobody'; there are: none")


def test_metrics_count_what_was_spoken(worker: ServingWorker) -> None:
    worker.speak(TEXT)
    text = worker.admin.get("/metrics").text

    assert 'cosyvoice_load_duration_seconds_count{phase="warmUp"} 1.0' in text
    assert "cosyvoice_ready 1.0" in text
    assert 'cosyvoice_requests_total{outcome="ok"}' in text

"""The whole worker when it cannot serve: exit code and termination message."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

from tests.engine.engine_process import write_config
from tests.engine.serving_worker import HOST, ServingWorker


def test_a_truncated_file_is_named(tiny_model_dir: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(tiny_model_dir, tmp_path / "broken")
    file = broken / "llm.pt"
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:1000])
    with ServingWorker(tmp_path, "--model", broken) as worker:
        code = worker.end()
        words = worker.last_words()

    assert code in {65, 66}
    assert words["file"].endswith("llm.pt")
    assert words["phase"] == "Map"
    assert words["retryable"] is False


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "schema: missing; namespace: missing"),
        (None, "cannot read the configuration"),
    ],
)
def test_a_configuration_that_is_wrong_is_told(tmp_path: Path, content: str | None, message: str) -> None:
    config = tmp_path / "model.json"
    if content is not None:
        config.write_text(content)
    with ServingWorker(tmp_path, "--config", config, "--root", tmp_path) as worker:
        code = worker.end()
        words = worker.last_words()

    assert (code, words["reason"]) == (64, "InvalidConfig")
    assert message in words["message"]


def test_weights_that_were_not_staged_are_told(tmp_path: Path) -> None:
    config = write_config(tmp_path / "model.json")
    with ServingWorker(tmp_path, "--config", config, "--root", tmp_path / "nothing") as worker:
        code = worker.end()

    assert (code, worker.last_words()["reason"]) == (66, "MissingFile")


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with ServingWorker(tmp_path, "--config", write_config(tmp_path / "model.json"), "--port", port) as worker:
            code = worker.end()

    assert code == 64
    assert worker.last_words()["message"].startswith(f"cannot listen on {HOST}, port {port}: ")


def test_a_model_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    with ServingWorker(tmp_path, "--model", tmp_path / "nowhere") as worker:
        code = worker.end()

    assert code == 66
    assert worker.last_words()["message"] == f"--model {tmp_path / 'nowhere'}: there is no such directory"


def test_without_an_api_key_that_can_be_used_nothing_is_begun(tiny_model_dir: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    with ServingWorker(tmp_path, "--model", tiny_model_dir, "--api-keys", keys) as worker:
        code = worker.end()

    assert (code, worker.last_words()["reason"]) == (64, "InvalidConfig")
    assert worker.last_words()["message"].startswith("there is no API key that can be used (it is empty): put one of ")


def test_with_one_nobody_gets_in_without_it(tiny_model_dir: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "ann").write_text("0123456789abcdef")
    with ServingWorker(tmp_path, "--model", tiny_model_dir, "--no-preload", "--api-keys", keys) as worker:
        worker.until_ready()
        statuses = [
            worker.api.get("/v1/models", headers=headers).status_code
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer 0123456789abcdef"})
        ]

    assert statuses == [401, 401, 200]
    assert "0123456789abcdef" not in (tmp_path / "worker.log").read_text()

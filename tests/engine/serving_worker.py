"""A whole worker (`cosyvoice-worker serve`: front and engine process) on loopback, for tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

HOST = "127.0.0.1"
PATIENCE_SECONDS = 300


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


class ServingWorker:
    """Started at once, killed with the `with` block if it still runs. `scratch` takes its log and last words."""

    def __init__(self, scratch: Path, *options: object, **environment: str) -> None:
        self.api_port, self.admin_port = free_port(), free_port()
        self._termination_log = scratch / "termination-log"
        self._termination_log.touch()
        self._log = (scratch / "worker.log").open("wb")
        words = ["--host", HOST, "--port", self.api_port, "--admin-port", self.admin_port, *options]
        words += ["--termination-log", self._termination_log]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cosyvoice_worker", "serve", *map(str, words)],
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stderr=self._log,
        )
        self.api = httpx.Client(base_url=f"http://{HOST}:{self.api_port}", timeout=PATIENCE_SECONDS)
        self.admin = httpx.Client(base_url=f"http://{HOST}:{self.admin_port}", timeout=PATIENCE_SECONDS)

    def __enter__(self) -> ServingWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.api.close()
        self.admin.close()
        self.process.kill()
        self.process.wait()
        self._log.close()

    # ----- waiting ----------------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition. Fails when the worker ends or the patience does."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if self.process.poll() is not None:
                raise AssertionError(f"the worker ended with {self.process.returncode}: {self.last_words()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"the worker is still in {self.status()}")
            time.sleep(0.02)

    def until_answering(self) -> None:
        self.until(self.ping)

    def until_ready(self) -> None:
        self.until_answering()
        self.until(lambda: self.api.get("/health").status_code == 200)

    def end(self) -> int:
        """Wait for the worker's own end; its exit code."""
        return self.process.wait(PATIENCE_SECONDS)

    # ----- asking -----------------------------------------------------------------------------------------------------

    def ping(self) -> bool:
        try:
            return self.api.get("/ping").status_code == 200
        except httpx.TransportError:
            return False

    def health(self) -> int:
        """The readiness probe's status, on a connection of its own."""
        return httpx.get(f"http://{HOST}:{self.api_port}/health").status_code

    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = self.admin.get("/status").json()
        return document

    def speak(self, text: str, **fields: object) -> httpx.Response:
        return self.api.post("/v1/audio/speech", json={"input": text, **fields})

    def engine_pid(self) -> int:
        pid: int = self.status()["engine"]["pid"]
        return pid

    def signal_engine(self, number: signal.Signals) -> None:
        os.kill(self.engine_pid(), number)

    def last_words(self) -> dict[str, Any]:
        """The termination message; empty while there is none."""
        text = self._termination_log.read_text()
        document: dict[str, Any] = json.loads(text) if text else {}
        return document

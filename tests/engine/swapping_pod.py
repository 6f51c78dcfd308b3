"""A pod that can be told to serve another revision: its files, the real stager beside the real worker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.engine.engine_process import model_json
from tests.engine.serving_worker import ServingWorker


class SwappingPod:
    """Started with a revision; ended with the `with` block, its container restarted by `restart`."""

    def __init__(self, scratch: Path, model: Path, revision: str, **engine: object) -> None:
        self._scratch = scratch
        self._config = scratch / "config"
        self._root = scratch / "root"
        for directory in (self._config, self._root):
            directory.mkdir()
        self.write("model.json", model, revision, **engine)
        self._run("stage")
        self._stager = self._start("stage", "--follow")
        self.worker = self._serve()

    def __enter__(self) -> SwappingPod:
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.__exit__()
        self._stager.kill()
        self._stager.wait()

    def write(self, document: str, model: Path, revision: str, **engine: object) -> None:
        """What the kubelet writes when the operator changes a document."""
        content = {**model_json(model, revision, **engine), "version": f"v-{revision}"}
        (self._config / document).write_text(json.dumps(content))

    def order(self, text: str) -> None:
        """What the kubelet writes when the operator orders a revision."""
        aside = self._config / "swap.tmp"
        aside.write_text(text)
        aside.replace(self._config / "swap")

    def offer(self, model: Path, order: str, **engine: object) -> None:
        """Order another revision."""
        self.write("candidate.json", model, order.partition(".")[0], **engine)
        self.order(order)

    def swap(self, order: str, *states: str) -> dict[str, Any]:
        """What the worker tells of `order`, once it is in one of `states`."""
        told: dict[str, Any] = {}

        def there() -> bool:
            told.clear()
            told.update(self.worker.status()["swap"] or {})
            return told.get("order") == order and told["state"] in states

        self.worker.until(there)
        return told

    def restart(self) -> None:
        """Kill the worker's front, which takes its engines along, and start it again as the kubelet does."""
        self.worker.__exit__()
        self.worker = self._serve()

    def processes(self) -> list[int]:
        """The engines that there are."""
        pid = self.worker.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def descriptors(self) -> int:
        """How many files and sockets the front holds open."""
        return sum(1 for _ in Path(f"/proc/{self.worker.process.pid}/fd").iterdir())

    def until_one_engine(self) -> None:
        self.worker.until(lambda: len(self.processes()) == 1)

    def settled(self, condition: Callable[[], bool] = lambda: True) -> None:
        """Wait until one engine is there and serves."""
        self.until_one_engine()
        self.worker.until(lambda: condition() and bool(self.worker.status()["ready"]))

    def _serve(self) -> ServingWorker:
        config = self._config / "model.json"
        environment = {"COSYVOICE_ENGINE_MEMORY_BYTES": str(300 * 2**20)}
        worker = ServingWorker(self._scratch, "--config", config, "--root", self._root, **environment)
        worker.until_ready()
        return worker

    def _run(self, *command: str) -> None:
        process = self._start(*command)
        assert process.wait(300) == 0

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        options = ["--config", str(self._config / "model.json"), "--root", str(self._root)]
        words = [sys.executable, "-m", "cosyvoice_worker", *command, *options]
        with (self._scratch / "stager.log").open("ab") as log:
            return subprocess.Popen([*words, "--termination-log", str(self._scratch / "none")], stderr=log)

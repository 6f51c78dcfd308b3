"""A pod's sidecar: the real `cosyvoice-worker stage --follow`, its configuration and its tmpfs."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.unit.staging.conftest import model_json, write_checkpoint

OLD, NEW, NEXT = "aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"
PATIENCE_SECONDS = 60.0

# Enough that copying it takes longer than noticing that it has begun. It holds no data on the disk.
SLOW_BYTES = 3 * 2**30


class Pod:
    """`v1`, `v2`, ... are model directories in its claim; OLD is the revision it was made with, of `v1`."""

    def __init__(self, model: Path, folder: Path) -> None:
        self.claim = folder / "versions"
        for name in ("v1", "v2", "v3"):
            shutil.copytree(model, self.claim / name)
            write_checkpoint(self.claim / name / "flow.pt", name.encode() * 5000)
        self.root = folder / "tmpfs"
        self.config = folder / "config"
        self.config.mkdir()
        self.size_limit = 2**33
        self.document("model.json", OLD, "v1")
        self.order("")
        self._termination_log = folder / "termination-log"
        self._termination_log.write_text("")
        self._process: subprocess.Popen[str] | None = None

    # ----- what the operator and the kubelet do -----------------------------------------------------------------------

    def document(self, name: str, revision: str, version: str) -> None:
        """Write model.json, current.json or candidate.json."""
        document = model_json(self.claim / version, revision)
        document["staging"]["sizeLimitBytes"] = self.size_limit
        self._replace(self.config / name, json.dumps(document))

    def order(self, text: str) -> None:
        self._replace(self.config / "swap", text)

    def stage(self) -> None:
        """The init container."""
        ended = subprocess.run(self._words("stage"), check=False, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr

    def start(self, *options: str) -> None:
        """Start the sidecar."""
        self._process = subprocess.Popen(self._words("stage", "--follow", *options), stderr=subprocess.PIPE, text=True)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, list[dict[str, Any]]]:
        """Signal the sidecar; its exit code and its log."""
        process = self._process
        assert process is not None
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        self._process = None
        return process.returncode, [json.loads(line) for line in errors.splitlines()]

    def close(self) -> None:
        if self._process is not None:
            self.end(signal.SIGKILL)

    # ----- what can be seen -------------------------------------------------------------------------------------------

    def answer(self, order: str) -> dict[str, Any]:
        """What the sidecar has said to `order` so far; empty when it has said nothing."""
        try:
            document: dict[str, Any] = json.loads((self.root / "orders" / f"{order}.json").read_text())
        except FileNotFoundError:
            return {}
        return document

    def until_answered(self, order: str) -> dict[str, Any]:
        """The final answer."""
        self.until(lambda: self.answer(order).get("state") in ("Staged", "Failed"))
        return self.answer(order)

    def until_copying(self) -> None:
        self.until((self.root / "incoming.partial" / "CosyVoice-BlankEN" / "added_tokens.json").exists)

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if self._process is not None and self._process.poll() is not None:
                raise AssertionError(f"the sidecar ended with {self._process.returncode}")
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {PATIENCE_SECONDS:g} s; there is {self.names()}")
            time.sleep(0.005)

    def child(self) -> int:
        """The process that stages."""
        assert self._process is not None
        (pid,) = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return int(pid)

    def staged(self, revision: str) -> Path | None:
        """The version that `revision` points to."""
        try:
            pointer = json.loads((self.root / "revisions" / f"{revision}.json").read_text())
        except FileNotFoundError:
            return None
        return self.root / str(pointer["directory"])

    def starts_with(self) -> str:
        """The revision that staged.json names."""
        revision: str = json.loads((self.root / "staged.json").read_text())["revision"]
        return revision

    def versions(self) -> set[Path]:
        return {path for path in self.root.iterdir() if len(path.name) == 64}

    def names(self) -> set[str]:
        return {path.name for path in self.root.iterdir()} if self.root.is_dir() else set()

    def slow_down(self, version: str) -> None:
        """Let the copy of `version` take a while."""
        with (self.claim / version / "CosyVoice-BlankEN" / "added_tokens.json").open("wb") as file:
            file.truncate(SLOW_BYTES)

    def last_words(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._termination_log.read_text())
        return document

    def _words(self, *command: str) -> list[str]:
        options = ["--config", self.config / "model.json", "--root", self.root]
        options += ["--termination-log", self._termination_log]
        return [sys.executable, "-m", "cosyvoice_worker", *command, *map(str, options)]

    @staticmethod
    def _replace(path: Path, text: str) -> None:
        """As the kubelet does: nobody sees half of it."""
        aside = path.with_name(path.name + ".new")
        aside.write_text(text)
        aside.replace(path)

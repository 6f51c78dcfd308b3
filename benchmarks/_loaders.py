"""Starts loading processes and reads what they say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks._proc import Peak


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One load in a fresh process: seconds, and bytes of anonymous memory beyond what the imports took."""

    load: float
    touch: float
    cpu: float
    growth: int
    peak: int


class Loader:
    """A loading process. `cgroup`, if given, is the file it writes its id into before it becomes Python."""

    def __init__(self, way: str, model: Path, cgroup: Path | None = None) -> None:
        command = [sys.executable, "-m", "benchmarks._loader", way, str(model)]
        if cgroup is not None:
            command = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(cgroup), *command]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"OMP_NUM_THREADS": "1", **os.environ},
        )

    def imported(self) -> bool:
        """Wait until it could begin; False when it was killed on the way."""
        return self._line() == "imported"

    def begin(self) -> None:
        """Let it load."""
        if self.process.stdin is None:
            raise RuntimeError("the loader was started without its input")
        try:
            self.process.stdin.write("load\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return  # killed; `result` tells

    def result(self) -> dict[str, float] | None:
        """What it says after loading; None when the kernel killed it. Raises RuntimeError for any other end."""
        line = self._line()
        if line:
            figures: dict[str, float] = json.loads(line)
            return figures
        if self.process.wait() == -signal.SIGKILL:
            return None
        raise RuntimeError(f"a loader ended with {self.process.returncode}; its error stands above")

    def end(self) -> None:
        """Whatever it is doing."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def _line(self) -> str:
        if self.process.stdout is None:
            raise RuntimeError("the loader was started without its output")
        return self.process.stdout.readline().strip()


@contextmanager
def loaders(count: int, way: str, model: Path, cgroup: Path | None = None) -> Iterator[list[Loader]]:
    """`count` of them, none left afterwards."""
    started: list[Loader] = []
    try:
        for _ in range(count):
            started.append(Loader(way, model, cgroup))  # noqa: PERF401 - those before a failure must be ended too
        yield started
    finally:
        for loader in started:
            loader.end()


def load_once(way: str, model: Path) -> Load:
    """In a fresh process, alone. Raises RuntimeError when it did not come through."""
    with loaders(1, way, model) as (loader,):
        loader.imported()
        with Peak(loader.process.pid) as peak:
            loader.begin()
            figures = loader.result()
    if figures is None:
        raise RuntimeError(f"the {way} loader was killed: is there memory for it?")
    before = int(figures["before"])
    return Load(
        load=figures["load"],
        touch=figures["touch"],
        cpu=figures["cpu"],
        growth=int(figures["after"]) - before,
        peak=max(peak.bytes, int(figures["after"])) - before,
    )

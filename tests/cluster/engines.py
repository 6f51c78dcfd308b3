"""The pods' engine processes as the nodes' machine sees them, and a hang that no file can bring about."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dev.playground import Playground

ENGINE_MODULE = b"cosyvoice_worker.engine"
POLL_SECONDS = 0.1


def engines_of(pod: dict[str, Any]) -> frozenset[int]:
    """Process ids, on this machine, of the engines that run in the pod."""
    return frozenset(pid for pid in _engines() if pod["metadata"]["uid"] in _cgroups_of(pid))


def worker_status(pod: dict[str, Any]) -> dict[str, Any] | None:
    """The pod's /status; None while it does not answer."""
    address = pod["status"].get("podIP")
    if address is None:
        return None
    try:
        with urllib.request.urlopen(f"http://{address}:8081/status", timeout=2) as answer:
            status: dict[str, Any] = json.load(answer)
            return status
    except (urllib.error.URLError, OSError):
        return None


@contextlib.contextmanager
def hanging_warm_ups(playground: Playground, name: str) -> Iterator[list[int]]:
    """Stop every engine that gets into its warm-up from now on, as a driver that hangs would; those stopped so far."""
    stopped: list[int] = []
    done = threading.Event()
    served = frozenset[int]().union(*map(engines_of, playground.pods(name)))

    def stop() -> None:
        while not done.wait(POLL_SECONDS):
            for pod in playground.pods(name):
                for engine in engines_of(pod) - served - set(stopped):
                    if _phase(worker_status(pod)) == "WarmUp":
                        os.kill(engine, signal.SIGSTOP)
                        stopped.append(engine)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield stopped
    finally:
        done.set()
        thread.join()


def _phase(status: dict[str, Any] | None) -> str | None:
    """The phase of the engine that loads: a second one beside the one that serves, or the only one."""
    if status is None:
        return None
    phase: str | None = (status.get("swap") or status)["phase"]
    return phase


def _engines() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and ENGINE_MODULE in _read(entry / "cmdline").split(b"\0"):
            yield int(entry.name)


def _cgroups_of(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/cgroup")).decode()


def _read(path: Path) -> bytes:
    """The file of a process, empty where that has gone."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""

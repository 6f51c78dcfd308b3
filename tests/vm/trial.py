"""Runs in the virtual machine: `python -m tests.vm.trial CONTAINERD_FOLDER OUT.json`. Measures, and judges nothing."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cosyvoice_worker.staging.orders import Result, write_result
from cosyvoice_worker.staging.pointer import Staged, write_pointer
from dev.waiting import wait_for
from tests.vm.containers import CGROUPS, SCRATCH, USER, Containerd, container

HERE = Path(__file__).resolve()
PROJECT = HERE.parents[2]
MIB = 2**20
HIGH = 64 * MIB
LIMIT = 512 * MIB
ADMIN_PORT = 8081
UID = "0f5d0b7b-8d00-4000-8000-000000000001"
POD = f"kubepods/burstable/pod{UID}"
GOOD, BAD = "aaaaaaaaaa", "bbbbbbbbbb"
ROUNDS, PINGS = 7, 50
MAX = "max"

Measured = dict[str, Any]


class Worker:
    """The real front in a container, over an engine whose body is a hog."""

    def __init__(self, containerd: Containerd, identifier: str, *, delegated: bool, high: int | None = HIGH) -> None:
        self._high = high
        self.identifier = identifier
        self.cgroup = CGROUPS / POD / identifier
        self._containerd = containerd
        self._config = SCRATCH / identifier / "config"
        self._root = SCRATCH / identifier / "shm"
        scratch = SCRATCH / identifier / "tmp"
        for directory in (self._config, self._root, scratch):
            directory.mkdir(parents=True)
            os.chown(directory, USER, USER)
        (self._config / "model.json").write_bytes(self._stage(GOOD, "v1"))
        body = {"destination": str(PROJECT / "worker/cosyvoice_worker/engine/__main__.py"), "type": "bind",
                "source": str(HERE.with_name("engine_body.py")), "options": ["bind", "ro"]}  # fmt: skip
        arguments = ["-m", "cosyvoice_worker", "serve", "--config", str(self._config / "model.json"),
                     "--root", str(self._root), "--termination-log", str(scratch / "ended")]  # fmt: skip
        environment = {"PYTHONPATH": str(PROJECT / "worker"), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(scratch)}
        spec = container(arguments, environment, f"/{POD}/{identifier}", mounts=[body], writable_cgroup=delegated,
                         memory=LIMIT)  # fmt: skip
        containerd.run(identifier, spec)
        wait_for("the worker to be ready", lambda: (self.status() or {}).get("ready"))

    def status(self) -> Measured | None:
        try:
            return dict(json.loads(_get(ADMIN_PORT, "/status")))
        except OSError:
            return None

    def value(self, file: str) -> str:
        """Of the kernel, below the container's cgroup."""
        return (self.cgroup / file).read_text().strip()

    def pids(self, cgroup: str) -> list[int]:
        return [int(pid) for pid in self.value(f"{cgroup}/cgroup.procs").split()]

    def engines(self) -> list[int]:
        """The engines' processes, wherever in the container they are."""
        found = subprocess.run(["pgrep", "-f", "cosyvoice_worker.engine"], capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split()]

    def swap(self, version: str) -> None:
        """Order `version`, as the stager and the operator would."""
        document = self._stage(BAD, version)
        (self._config / "candidate.json").write_bytes(document)
        write_result(self._root, Result(order=f"{BAD}.1", revision=BAD, state="Staged"))
        for path in self._root.rglob("*"):
            os.chown(path, USER, USER)
        (self._config / "swap").write_text(f"{BAD}.1")

    def end(self) -> None:
        self._containerd.end(self.identifier)

    def _stage(self, revision: str, version: str) -> bytes:
        document = json.dumps(_document(revision, version, self._high), separators=(",", ":")).encode()
        (self._root / revision).mkdir()
        staged = Staged(
            revision=revision, digest=f"sha256:{revision}", directory=revision, bytes=1, seconds=0.1, files=1
        )
        write_pointer(self._root, staged, document)
        return document


def _document(revision: str, version: str, high: int | None) -> Mapping[str, Any]:
    wish = {} if high is None else {"memoryHighBytes": high}
    return {
        "schema": 1, "namespace": "speech", "model": "narrator", "version": version, "revision": revision,
        "source": {"uri": "pvc://voices/narrator", "path": "/source/narrator", "digest": None},
        "staging": {"sizeLimitBytes": 2**30, "verify": "Once"},
        "engine": {
            "device": "cpu", "dtype": "auto", "loadTimeoutSeconds": 120, "preload": True, "fallbackToCPU": False,
            "warmUp": {"texts": ["Hello."], "voice": None, "maxSeconds": 1.0},
        },
        **wish,
    }  # fmt: skip


def _get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def pings() -> list[float]:
    """How long each of some /ping took, in seconds, one after the other."""
    taken = []
    for _ in range(PINGS):
        began = time.perf_counter()
        _get(ADMIN_PORT, "/ping")
        taken.append(time.perf_counter() - began)
    return taken


def events(worker: Worker, cgroup: str) -> dict[str, int]:
    return {
        name: int(count)
        for name, count in (line.split() for line in worker.value(f"{cgroup}/memory.events").splitlines())
    }


def delegated(containerd: Containerd) -> Measured:
    """Route (a): the worker's own cgroups."""
    worker = Worker(containerd, "a" * 64, delegated=True)
    status = worker.status() or {}
    (engine,) = worker.engines()
    measured: Measured = {
        "told": status["memoryHigh"],
        "high": {leaf: worker.value(f"{leaf}/memory.high") for leaf in (".", "front", "engine-1")},
        "engine in its leaf": worker.pids("engine-1") == [engine],
        "rounds": [],
    }
    pings()  # The first ones bring pages in.
    for _ in range(ROUNDS):
        os.kill(engine, signal.SIGUSR2)
        time.sleep(0.5)
        alone, before = pings(), events(worker, "engine-1")["high"]
        os.kill(engine, signal.SIGUSR1)
        time.sleep(0.5)
        beside = pings()
        throttled = events(worker, "engine-1")["high"] - before
        measured["rounds"].append({"alone": alone, "beside the hog": beside, "throttled": throttled})
    os.kill(engine, signal.SIGUSR2)
    measured["front throttled"] = events(worker, "front")["high"]
    (worker.cgroup / "engine-1" / "memory.high").write_text(MAX)
    wait_for("memory.high to be set again", lambda: worker.value("engine-1/memory.high") == str(HIGH))
    measured["repaired"] = worker.value("engine-1/memory.high")
    worker.end()
    return measured


def second_engine(containerd: Containerd) -> Measured:
    """One that takes more memory than there is, while the container's memory.oom.group is 1."""
    worker = Worker(containerd, "c" * 64, delegated=True, high=None)
    (engine,), front = worker.engines(), worker.pids("front")
    worker.swap("too-much")
    swap = wait_for("the swap to fail", lambda: _ended_swap(worker))
    measured = {
        "oom.group": worker.value("memory.oom.group"),
        "swap": swap,
        "killed": events(worker, ".")["oom_kill"],
        "front lives": worker.pids("front") == front,
        "first engine lives": worker.engines() == [engine],
        "ready": (worker.status() or {}).get("ready"),
        "ping": _get(ADMIN_PORT, "/ping").decode(),
    }
    worker.end()
    return measured


def _ended_swap(worker: Worker) -> Measured | None:
    swap: Measured | None = (worker.status() or {}).get("swap")
    return swap if swap and swap["state"] in {"Failed", "Switched"} else None


class Pods(BaseHTTPRequestHandler):
    """What the agent asks the API server."""

    wish: str | None = str(HIGH)
    container = ""

    def do_GET(self) -> None:
        labels = {} if self.wish is None else {"cosyvoice.dev/memory-high": self.wish}
        running = {"name": "worker", "containerID": f"containerd://{self.container}", "state": {"running": {}}}
        pod = {
            "metadata": {"namespace": "speech", "name": "narrator-1", "uid": UID, "labels": labels},
            "status": {"containerStatuses": [running]},
        }
        body = json.dumps({"kind": "PodList", "metadata": {}, "items": [pod]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def node_agent(containerd: Containerd) -> Measured:
    """Route (b): the agent, with no capability but to read files, sets it from outside."""
    worker = Worker(containerd, "b" * 64, delegated=False)
    Pods.container = worker.identifier
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pods)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    measured: Measured = {"before": worker.value("memory.high"), "told before": (worker.status() or {})["memoryHigh"]}
    arguments = ["-m", "cosyvoice_operator.nodeagent", "--node", "vm", "--interval-seconds", "1",
                 "--api-server", f"http://127.0.0.1:{server.server_port}"]  # fmt: skip
    cgroups = {"destination": "/sys/fs/cgroup", "type": "bind", "source": "/sys/fs/cgroup", "options": ["rbind", "rw"]}
    environment = {"PYTHONPATH": str(PROJECT / "operator"), "PYTHONDONTWRITEBYTECODE": "1"}
    containerd.run("agent", container(arguments, environment, "/kubepods/agent/agent", user=0, mounts=[cgroups]))

    def becomes(value: str) -> str:
        wait_for(f"memory.high to be {value}", lambda: worker.value("memory.high") == value)
        return worker.value("memory.high")

    measured["set"] = becomes(str(HIGH))
    measured["told"] = (worker.status() or {})["memoryHigh"]
    (worker.cgroup / "memory.high").write_text(MAX)
    measured["repaired"] = becomes(str(HIGH))
    (engine,) = worker.engines()
    before = events(worker, ".")["high"]
    os.kill(engine, signal.SIGUSR1)
    wait_for("the hog to be throttled", lambda: events(worker, ".")["high"] > before + 10)
    measured["pings beside the hog"] = pings()
    os.kill(engine, signal.SIGUSR2)
    Pods.wish = None
    measured["given back"] = becomes(MAX)
    containerd.end("agent")
    worker.end()
    return measured


def main(folder: str, out: str) -> None:
    """Each trial in a container of its own, one after the other."""
    began = time.monotonic()
    SCRATCH.mkdir(parents=True)
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +cpu +pids")
    containerd = Containerd(Path(folder))
    measured: Measured = {"seconds": {"containerd": time.monotonic() - began}}
    try:
        for name, route in (("delegated", delegated), ("second engine", second_engine), ("node agent", node_agent)):
            at = time.monotonic()
            measured[name] = route(containerd)
            measured["seconds"][name] = time.monotonic() - at
    finally:
        for log in sorted(SCRATCH.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text()[-4000:]}")  # noqa: T201 - what a failure is understood by
        Path(out).write_text(json.dumps(measured))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Server processes to measure: started, asked until they answer, ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
PATIENCE_SECONDS = 120
ANSWER_SECONDS = 10
END_SECONDS = 10
POLL_SECONDS = 0.001
GOOD = b" 200 "


@dataclass(frozen=True, slots=True)
class Server:
    """A server process, and when it was started (`time.perf_counter`)."""

    process: subprocess.Popen[bytes]
    port: int
    started: float

    def seconds_until(self, path: str, every: float = POLL_SECONDS) -> float:
        """From its start to the first answer 200 to `GET path`. Raises RuntimeError when it ends or takes too long."""
        while not get(self.port, path):
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}; its error stands above")
            if time.perf_counter() - self.started > PATIENCE_SECONDS:
                raise RuntimeError(f"{path} was not answered with 200 within {PATIENCE_SECONDS} s")
            time.sleep(every)
        return time.perf_counter() - self.started


@contextmanager
def serving(module: str, arguments: Sequence[str], port: int) -> Iterator[Server]:
    """`python -m MODULE ARGUMENTS`, which serves on `port`; its log is shown only if the block fails."""
    with tempfile.TemporaryFile() as log:
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        started = time.perf_counter()
        command = [sys.executable, "-m", module, *arguments]
        process = subprocess.Popen(command, env=environment, stderr=log, stdout=subprocess.DEVNULL)
        try:
            yield Server(process, port, started)
        except Exception:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise
        finally:
            _end(process)


@contextmanager
def worker(options: Sequence[str]) -> Iterator[tuple[Server, int]]:
    """`cosyvoice-worker serve` with `options`: the server on its admin port, and the port of its API."""
    admin, api = free_port(), free_port()
    words = ["--host", HOST, "--port", str(api), "--admin-port", str(admin), "--termination-log", os.devnull]
    with serving("cosyvoice_worker", ["serve", *words, *options], admin) as server:
        yield server, api


def staged_options(root: Path) -> list[str]:
    """The options for what `local.prepare` has written into `root`: a start as in a pod, without the pod's paths."""
    return ["--config", str(root / "model.json"), "--root", str(root), "--voices", str(root / "no-voices")]


def _end(process: subprocess.Popen[bytes]) -> None:
    """By its own rules first: a worker has files to remove."""
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def get(port: int, path: str) -> bool:
    """Whether `GET path` is answered with 200; False as well where nobody listens."""
    try:
        with socket.create_connection((HOST, port), ANSWER_SECONDS) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n\r\n".encode())
            return GOOD in connection.recv(1024).partition(b"\r\n")[0]
    except OSError:
        return False

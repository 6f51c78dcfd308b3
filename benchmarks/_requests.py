"""Ten speech requests at the same moment, always the same ten."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks._models import VOICE
from benchmarks._proc import cpu_seconds
from benchmarks._serving import HOST, PATIENCE_SECONDS

REQUESTS = 10
TEXT = "The first ones shall not wait longer."


@dataclass(frozen=True, slots=True)
class Ten:
    """The latency of each in seconds, and the engine's processor time for all, which a busy machine stretches less."""

    latencies: Sequence[float]
    cpu: float


def ten_at_once(port: int, engine: int) -> Ten:
    """Seeds 0 to 9 to the API on `port`, whose engine is the process `engine`. Raises RuntimeError if one fails."""
    begin = threading.Barrier(REQUESTS)

    def speak(seed: int) -> float:
        begin.wait()
        start = time.perf_counter()
        _ask(port, "POST", "/v1/audio/speech", json.dumps({"input": TEXT, "voice": VOICE, "seed": seed}))
        return time.perf_counter() - start

    before = cpu_seconds(engine)
    with ThreadPoolExecutor(REQUESTS) as pool:
        latencies = list(pool.map(speak, range(REQUESTS)))
    return Ten(latencies, cpu_seconds(engine) - before)


def engine_pid(admin_port: int) -> int:
    """The id of the worker's engine process, as its status tells it."""
    pid: int = json.loads(_ask(admin_port, "GET", "/status"))["engine"]["pid"]
    return pid


def _ask(port: int, method: str, path: str, body: str | None = None) -> bytes:
    """The whole answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE_SECONDS)
    try:
        connection.request(method, path, body, {"content-type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        raise RuntimeError(f"{method} {path} was answered with {response.status}: {answer.decode(errors='replace')}")
    return answer

"""Ten speech requests at the same moment, in an order that stays the same."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks._models import VOICE
from benchmarks._proc import cpu_seconds
from benchmarks._serving import HOST, PATIENCE_SECONDS

REQUESTS = 10
TEXT = "First things first."
SPEECH = "/v1/audio/speech"
HEADERS = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Ten:
    """The latency of each in seconds, and the engine's processor time for all, which a busy machine stretches less."""

    latencies: Sequence[float]
    cpu: float


def ten_at_once(port: int, engine: int, first_seed: int) -> Ten:
    """Ten seeds to the API on `port`, whose engine is the process `engine`. Raises RuntimeError if one fails.

    They are sent one after the other by one thread, before the first is answered: which one waits for which is then
    the same each time.
    """
    before = cpu_seconds(engine)
    connections = [http.client.HTTPConnection(HOST, port, timeout=PATIENCE_SECONDS) for _ in range(REQUESTS)]
    starts = []
    for seed, connection in enumerate(connections, first_seed):
        starts.append(time.perf_counter())
        connection.request("POST", SPEECH, json.dumps({"input": TEXT, "voice": VOICE, "seed": seed}), HEADERS)

    def seconds(start: float, connection: http.client.HTTPConnection) -> float:
        _answer(connection)
        return time.perf_counter() - start

    with ThreadPoolExecutor(REQUESTS) as pool:
        latencies = list(pool.map(seconds, starts, connections))
    return Ten(latencies, cpu_seconds(engine) - before)


def engine_pid(admin_port: int) -> int:
    """The id of the worker's engine process, as its status tells it."""
    connection = http.client.HTTPConnection(HOST, admin_port, timeout=PATIENCE_SECONDS)
    connection.request("GET", "/status")
    pid: int = json.loads(_answer(connection))["engine"]["pid"]
    return pid


def _answer(connection: http.client.HTTPConnection) -> bytes:
    """The whole body."""
    try:
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        raise RuntimeError(f"a request was answered with {response.status}: {body.decode(errors='replace')}")
    return body

"""The node agent as a process: it asks an API server, sets what it is told, keeps it, and ends when it is told to."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.unit.operator.nodeagent.cgroup_tree import GIB, high_of, make_container, make_tree
from tests.unit.operator.nodeagent.test_pods import pod

PATIENCE_SECONDS = 30.0
OPERATOR = Path(__file__).parents[4] / "operator"


class ApiServer:
    """Answers every request with `pods`, or with 500 where there are none; `asked` are the paths.

    `cuts`: the connection ends before the answer does. `elsewhere`: it sends whoever asks to another address.
    """

    def __init__(self) -> None:
        self.pods: list[dict[str, Any]] | None = [pod()]
        self.asked: list[str] = []
        self.cuts = False
        self.elsewhere: str | None = None
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                content = json.dumps({"items": server.pods}).encode()
                self.send_response(500 if server.pods is None else 307 if server.elsewhere else 200)
                if server.elsewhere:
                    self.send_header("Location", server.elsewhere)
                if server.cuts:
                    self.send_header("Transfer-Encoding", "chunked")
                    content = b"ff\r\n" + content
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def api() -> Iterator[ApiServer]:
    server = ApiServer()
    yield server
    server.http.shutdown()
    server.http.server_close()


class Agent:
    def __init__(self, log: Path, *flags: str) -> None:
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cosyvoice_operator.nodeagent", "--node=n1", "--interval-seconds=0.05", *flags],
                env={"PYTHONPATH": str(OPERATOR)},
                stderr=file,
            )

    def messages(self) -> list[str]:
        return [json.loads(line)["message"] for line in self._log.read_text().splitlines()]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_SECONDS)


@pytest.fixture
def start(tmp_path: Path, api: ApiServer) -> Iterator[Callable[..., Agent]]:
    started: list[Agent] = []

    def run(*flags: str) -> Agent:
        started.append(Agent(tmp_path / "log", f"--api-server={api.url}", *flags))
        return started[-1]

    yield run
    for agent in started:
        agent.process.kill()
        agent.process.wait()


def eventually(what: str, probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not probe():
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS:.0f} s for {what}"
        time.sleep(0.02)


def test_it_sets_keeps_and_takes_back_and_outlives_the_api_server(
    tmp_path: Path, api: ApiServer, start: Callable[..., Agent]
) -> None:
    root = make_tree(tmp_path)
    container = make_container(root)
    agent = start(f"--cgroup-root={root}")
    eventually("the value", lambda: high_of(container) == str(GIB))

    api.pods = None
    eventually("the word of it", lambda: any("HTTP Error 500" in message for message in agent.messages()))
    (container / "memory.high").write_text("max\n")
    eventually("the repair", lambda: high_of(container) == str(GIB))

    api.pods, api.cuts = [], True
    eventually("the word of it", lambda: any("IncompleteRead" in message for message in agent.messages()))
    assert high_of(container) == str(GIB)

    api.pods, api.cuts = [pod(label="")], False
    eventually("max", lambda: high_of(container) == "max")
    assert agent.stop() == 0


def test_what_it_set_stays_when_it_ends(tmp_path: Path, start: Callable[..., Agent]) -> None:
    root = make_tree(tmp_path)
    container = make_container(root)
    agent = start(f"--cgroup-root={root}")
    eventually("the value", lambda: high_of(container) == str(GIB))

    assert agent.stop() == 0
    assert high_of(container) == str(GIB)


def test_it_asks_for_the_worker_pods_of_its_node_alone(
    tmp_path: Path, api: ApiServer, start: Callable[..., Agent]
) -> None:
    start(f"--cgroup-root={make_tree(tmp_path)}", "--namespaces=speech,radio")
    eventually("two requests", lambda: len(api.asked) >= 2)

    query = (
        "?fieldSelector=spec.nodeName%3Dn1"
        "&labelSelector=cosyvoice.dev%2Fmodel%2Capp.kubernetes.io%2Fcomponent%3Dworker&resourceVersion=0"
    )
    assert api.asked[:2] == [f"/api/v1/namespaces/{namespace}/pods{query}" for namespace in ("speech", "radio")]


def test_it_is_not_sent_elsewhere(tmp_path: Path, api: ApiServer, start: Callable[..., Agent]) -> None:
    api.elsewhere = f"{api.url}/elsewhere"
    agent = start(f"--cgroup-root={make_tree(tmp_path)}")
    eventually("the word of it", lambda: any("HTTP Error 307" in message for message in agent.messages()))

    assert "/elsewhere" not in api.asked


def test_on_cgroup_version_1_it_says_so_once_and_rests(
    tmp_path: Path, api: ApiServer, start: Callable[..., Agent]
) -> None:
    agent = start(f"--cgroup-root={tmp_path}")
    eventually("the word of it", lambda: bool(agent.messages()))

    (message,) = agent.messages()
    assert message.startswith(f"{tmp_path} is not of cgroup v2")
    assert agent.process.poll() is None
    assert agent.stop() == 0
    assert api.asked == []


def test_without_a_node_it_does_not_begin(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cosyvoice_operator.nodeagent", "--api-server=http://127.0.0.1:1"]
    done = subprocess.run(command, env={"PYTHONPATH": str(OPERATOR)}, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "--node" in done.stderr

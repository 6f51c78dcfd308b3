"""`cosyvoice-operator run` as a process of its own, under the RBAC of its service account."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.apiserver.control_plane import ControlPlane, free_port

PATIENCE_SECONDS = 60.0


def eventually(what: str, probe: Callable[[], Any]) -> Any:
    """The first truthy value of `probe`. Raises AssertionError when it never comes."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (value := probe()):
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS:.0f} s for {what}"
        time.sleep(0.1)
    return value


class OperatorProcess:
    """One operator. `flags` are those of `run`; it watches `namespace` alone, so that tests do not meet.

    `kubeconfig`: where not straight to the API server.
    """

    def __init__(
        self,
        plane: ControlPlane,
        log: Path,
        namespace: str,
        identity: str,
        *flags: str,
        kubeconfig: Path | None = None,
    ) -> None:
        self._log = log
        self.health_port, self.metrics_port = free_port(), free_port()
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig or plane.operator_kubeconfig)}
        environment["PYTHONPATH"] = str(Path(__file__).parents[2] / "operator")
        ports = (f"--health-port={self.health_port}", f"--metrics-port={self.metrics_port}")
        command = (sys.executable, "-m", "cosyvoice_operator", "run", f"--namespaces={namespace}", *ports)
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [*command, f"--identity={identity}", "--device=cpu", "--worker-image=worker:1", *flags],
                env=environment,
                stdout=file,
                stderr=file,
            )

    def entries(self) -> list[dict[str, Any]]:
        """The log so far; every line of it is an object."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def leads(self) -> bool:
        return any(entry["message"] == "leading" for entry in self.entries())

    def health(self) -> int:
        """The status code of /healthz; 0 while nobody answers."""
        return self._get(self.health_port, "/healthz")[0]

    def metrics(self) -> str:
        return self._get(self.metrics_port, "/metrics")[1]

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def kill(self) -> None:
        """SIGKILL, whatever state it is in."""
        self.process.kill()
        self.process.wait()

    def _get(self, port: int, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""
        except OSError:
            return 0, ""

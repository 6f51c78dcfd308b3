"""A Prometheus with its node exporter, as Debian has them, on ports of its own while a test needs it."""

from __future__ import annotations

import contextlib
import math
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from dev.waiting import wait_for

SCRAPE_SECONDS = 2
Labels = dict[str, str]


@dataclass(frozen=True)
class Prometheus:
    """Its HTTP API at `address`."""

    address: str

    def get(self, path: str, **arguments: str) -> Any:
        """The `data` of an answer."""
        answer = httpx.get(f"{self.address}/api/v1/{path}", params=arguments, timeout=10)
        assert answer.is_success, f"{path} {arguments}: {answer.text}"
        return answer.json()["data"]

    def query(self, expression: str) -> list[tuple[Labels, float]]:
        """The samples that it finds now, without those that are no number."""
        found = self.get("query", query=expression)["result"]
        samples = [(one["metric"], float(one["value"][1])) for one in found]
        return [(labels, value) for labels, value in samples if not math.isnan(value)]

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.address}/-/ready", timeout=2).is_success
        except httpx.TransportError:
            return False


@contextlib.contextmanager
def running(folder: Path, jobs: list[dict[str, Any]], rules: dict[str, Any]) -> Iterator[Prometheus]:
    """Prometheus at work on these scrape jobs, those of the node exporter, and rules; its data goes into `folder`."""
    own, exporter = _free_ports(2)
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    nodes = {"job_name": "nodes", "static_configs": [{"targets": [f"127.0.0.1:{exporter}"]}]}
    seconds = f"{SCRAPE_SECONDS}s"
    config = {
        "global": {"scrape_interval": seconds, "scrape_timeout": seconds, "evaluation_interval": seconds},
        "rule_files": [str(folder / "rules.yaml")],
        "scrape_configs": [*jobs, nodes],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    collectors = ["--collector.disable-defaults", "--collector.diskstats", "--collector.meminfo"]
    with contextlib.ExitStack() as stack:
        _start(stack, folder, "prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{exporter}", *collectors)
        _start(
            stack,
            folder,
            "prometheus",
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{own}",
        )
        prometheus = Prometheus(f"http://127.0.0.1:{own}")
        try:
            wait_for("Prometheus", prometheus.is_ready, timeout=30)
            yield prometheus
        except Exception as error:
            error.add_note((folder / "prometheus.log").read_text()[-3000:])
            raise


def _start(stack: contextlib.ExitStack, folder: Path, program: str, *arguments: str) -> None:
    log = stack.enter_context((folder / f"{program}.log").open("wb"))
    process = subprocess.Popen([program, *arguments], stdout=log, stderr=subprocess.STDOUT)
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in sockets]

"""A node of the local cluster that goes silent, as one does whose machine has lost its network."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from dev.cluster import cgroups
from dev.cluster.plan import Cluster
from dev.kubectl import Kubectl


@contextlib.contextmanager
def silent_kubelet(cluster: Cluster, node: str) -> Iterator[None]:
    """The node's kubelet is stopped while the context lasts: its containers run on, and nobody hears of them."""
    kubelet = _kubelet(cluster, node)
    os.kill(kubelet, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(kubelet, signal.SIGCONT)


def is_ready(kubectl: Kubectl, node: str) -> bool:
    """Whether the node is Ready and takes pods."""
    found = kubectl.get("node", node)
    told = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}
    return told["Ready"] == "True" and not found["spec"].get("taints")


def _kubelet(cluster: Cluster, node: str) -> int:
    name = f"--hostname-override={node}".encode()
    for pid in cgroups.members(cluster):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if name in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return pid
    raise LookupError(f"no kubelet of {node} runs")

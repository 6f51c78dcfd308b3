"""kubectl against one of the local clusters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dev.cluster import build
from dev.cluster.modules import KUBERNETES
from dev.cluster.plan import Cluster
from dev.cluster.shell import run


def path(cluster: Cluster) -> Path:
    return build.folder(KUBERNETES, cluster.cache) / "kubectl"


def kubectl(cluster: Cluster, *arguments: str, stdin: str | None = None) -> str:
    """Run kubectl as the cluster's administrator and return what it prints."""
    return run([path(cluster), f"--kubeconfig={cluster.kubeconfig}", *arguments], stdin=stdin)


def apply(cluster: Cluster, objects: list[dict[str, Any]]) -> None:
    """Server-side apply of some objects."""
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    kubectl(cluster, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=document)


def get(cluster: Cluster, *arguments: str) -> dict[str, Any]:
    """`kubectl get … -o json`."""
    found: dict[str, Any] = json.loads(kubectl(cluster, "get", *arguments, "-o", "json"))
    return found

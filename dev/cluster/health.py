"""Is the cluster whole? Asked of the cluster itself."""

from __future__ import annotations

import time
from typing import Any

from dev.cluster import kubectl, processes, registry
from dev.cluster.errors import ClusterError
from dev.cluster.plan import Cluster

PATIENCE_SECONDS = 60.0


def api_ready(cluster: Cluster) -> bool:
    try:
        return kubectl.kubectl(cluster, "get", "--raw", "/readyz", "--request-timeout=5s") == "ok"
    except ClusterError:
        return False


def nodes_ready(cluster: Cluster) -> bool:
    ready = [node["metadata"]["name"] for node in _items(cluster, "nodes") if _condition(node, "Ready")]
    return set(ready) >= {node.name for node in cluster.nodes}


def dns_ready(cluster: Cluster) -> bool:
    deployments = _items(cluster, "deployments", "--namespace=kube-system")
    return any(_condition(one, "Available") for one in deployments if one["metadata"]["name"] == "coredns")


def default_account_there(cluster: Cluster) -> bool:
    """Pods can only be created once the controller manager has made their namespace's ServiceAccount."""
    accounts = _items(cluster, "serviceaccounts", "--namespace=default")
    return any(one["metadata"]["name"] == "default" for one in accounts)


def healthy(cluster: Cluster) -> bool:
    """Everything works."""
    return api_ready(cluster) and nodes_ready(cluster) and dns_ready(cluster)


def ailment(cluster: Cluster) -> str | None:
    """Why a cluster has to be started anew, None if it need not be.

    One whose daemons all run gets time: a busy machine delays a kubelet's report, and what runs in it would be lost.
    """
    if not registry.is_current(cluster):
        return "it runs other binaries than this tree asks for"
    if not processes.complete(cluster):
        return "some of its daemons do not run"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not healthy(cluster):
        if time.monotonic() > deadline:
            return f"API server, nodes or DNS were not ready for {PATIENCE_SECONDS:.0f} s"
        time.sleep(1)
    return None


def _items(cluster: Cluster, *what: str) -> list[dict[str, Any]]:
    try:
        items: list[dict[str, Any]] = kubectl.get(cluster, *what, "--request-timeout=5s")["items"]
    except ClusterError:
        return []
    return items


def _condition(thing: dict[str, Any], kind: str) -> bool:
    conditions = thing.get("status", {}).get("conditions", [])
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)

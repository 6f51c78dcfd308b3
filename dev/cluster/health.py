"""Is the cluster whole? Asked of the cluster itself."""

from __future__ import annotations

from typing import Any

from dev.cluster import kubectl, registry
from dev.cluster.errors import ClusterError
from dev.cluster.plan import Cluster


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
    """Everything is up, and from the binaries that this tree asks for."""
    return registry.is_current(cluster) and api_ready(cluster) and nodes_ready(cluster) and dns_ready(cluster)


def _items(cluster: Cluster, *what: str) -> list[dict[str, Any]]:
    try:
        items: list[dict[str, Any]] = kubectl.get(cluster, *what, "--request-timeout=5s")["items"]
    except ClusterError:
        return []
    return items


def _condition(thing: dict[str, Any], kind: str) -> bool:
    conditions = thing.get("status", {}).get("conditions", [])
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)

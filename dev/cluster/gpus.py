"""Fake GPUs: nodes that say they have `nvidia.com/gpu`, so that scheduling and quotas can be tried without any."""

from __future__ import annotations

import json

from dev.cluster.kubectl import kubectl
from dev.cluster.plan import Cluster

RESOURCE = "nvidia.com/gpu"


def patch(count: int) -> str:
    """The JSON patch of a node's status that gives it `count` GPUs; 0 takes them away."""
    pointer = RESOURCE.replace("~", "~0").replace("/", "~1")
    fields = [f"/status/{field}/{pointer}" for field in ("capacity", "allocatable")]
    # "add" replaces too, so that what there was does not matter, and only then can be removed.
    steps = [{"op": "add", "path": field, "value": str(count)} for field in fields]
    if count == 0:
        steps += [{"op": "remove", "path": field} for field in fields]
    return json.dumps(steps)


def set_gpus(cluster: Cluster, count: int, node_names: tuple[str, ...] = ()) -> None:
    """Give the named nodes (all if none is named) `count` GPUs each."""
    for name in node_names or tuple(node.name for node in cluster.nodes):
        kubectl(cluster, "patch", "node", name, "--subresource=status", "--type=json", "--patch", patch(count))

"""What a node's daemons are told."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dev.cluster import node_config
from dev.cluster.node_config import Machine
from dev.cluster.plan import PAUSE_IMAGE, Cluster


def cluster(nodes: int = 2) -> Cluster:
    return Cluster("default", 0, nodes, Path("/var/lib/x"), Path("/root/.cache/x"))


@pytest.mark.parametrize(("nodes", "cpu", "memory"), [(1, "0m", "0Mi"), (2, "1000m", "4096Mi"), (4, "1500m", "6144Mi")])
def test_nodes_divide_the_machine_among_them(nodes: int, cpu: str, memory: str) -> None:
    for node in cluster(nodes).nodes:
        reserved = node_config.kubelet(node, Machine(cpus=2, memory_bytes=8 * 2**30))["systemReserved"]

        assert reserved == {"cpu": cpu, "memory": memory}


def test_the_kubelet_speaks_to_its_own_containerd() -> None:
    for node in cluster().nodes:
        told = tomllib.loads(node_config.containerd_toml(node))
        kubelet = node_config.kubelet(node, Machine(2, 2**33))

        assert kubelet["containerRuntimeEndpoint"] == f"unix://{told['grpc']['address']}"
        assert kubelet["cgroupRoot"] == f"/{node.cgroup}"


def test_containerd_keeps_images_outside_the_state_and_everything_else_in_the_nodes_run() -> None:
    node = cluster().nodes[0]

    told = tomllib.loads(node_config.containerd_toml(node))

    assert told["root"] == str(node.image_store)
    assert told["state"] == "/run/containerd"
    assert told["plugins"]["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"] == PAUSE_IMAGE


def test_pods_get_addresses_of_their_nodes_subnet() -> None:
    for node in cluster().nodes:
        plugin = node_config.network_plugins(node)["plugins"][0]

        assert plugin["ipam"]["ranges"] == [[{"subnet": node.pod_subnet}]]

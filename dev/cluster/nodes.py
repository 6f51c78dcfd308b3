"""Starting nodes: each a containerd in a mount namespace of its own and a kubelet that joins it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from dev.cluster import build, credentials, node_config, processes
from dev.cluster.modules import CONTAINERD, KUBERNETES
from dev.cluster.plan import Node
from dev.cluster.shell import run

ENTRY = Path(__file__).with_name("node.sh")
CONTAINERD_SECONDS = 60.0


def machine() -> node_config.Machine:
    return node_config.Machine(os.cpu_count() or 1, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def start_containerd(node: Node, daemons: processes.Daemons) -> int:
    """Start the node's containerd and wait until it answers; returns its process id, which the kubelet joins."""
    for name in ("cni", "log", "kubelet", "network", "nri/conf.d", "nri/plugins"):
        (node.directory / name).mkdir(parents=True)
    node.image_store.mkdir(parents=True, exist_ok=True)
    (node.directory / "containerd.toml").write_text(node_config.containerd_toml(node))
    (node.directory / "network" / "pods.conflist").write_text(json.dumps(node_config.network_plugins(node)))
    (node.directory / "kubelet.json").write_text(json.dumps(node_config.kubelet(node, machine())))
    binaries = build.folder(CONTAINERD, node.cluster.cache)
    shared_memory = machine().memory_bytes // node.cluster.node_count
    name = f"containerd-{node.name}"
    pid = daemons.start(
        name,
        [
            *("nsenter", f"--net={node.cluster.network_namespace}", "--"),
            *("unshare", "--mount", "--propagation", "slave", "--"),
            *(ENTRY, node.directory, str(shared_memory), binaries / "containerd"),
        ],
        path=[binaries],  # in front: containerd takes the first shim it finds, and a distribution's may be too old
    )
    daemons.wait_until(f"{name} answers", node.socket.exists, CONTAINERD_SECONDS, culprit=name)
    run([binaries / "ctr", "--address", node.socket, "version"])
    return pid


def start_kubelet(node: Node, containerd_pid: int, daemons: processes.Daemons) -> None:
    """Start the node's kubelet in the mount and network namespace of its containerd."""
    daemons.start(
        f"kubelet-{node.name}",
        [
            *("nsenter", "--target", str(containerd_pid), "--mount", "--net", "--"),
            build.folder(KUBERNETES, node.cluster.cache) / "kubelet",
            f"--config={node.directory / 'kubelet.json'}",
            f"--kubeconfig={credentials.kubeconfig_of(node.cluster, node.name)}",
            f"--hostname-override={node.name}",
            f"--node-ip={node.address}",
        ],
    )

"""What a node's containerd, network plugin and kubelet are told. Pure: text from the plan and the machine's size."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dev.cluster import credentials
from dev.cluster.plan import PAUSE_IMAGE, Node

# Debian's containernetworking-plugins and, on other systems, where the upstream release is unpacked.
NETWORK_PLUGINS = ("/usr/lib/cni", "/opt/cni/bin")
CONTAINERD_TOML = """\
version = 3
root = {root}
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.tracing",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
address = {socket}

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause}"

[plugins."io.containerd.cri.v1.runtime"]
disable_apparmor = true
disable_hugetlb_controller = true
restrict_oom_score_adj = true
tolerate_missing_hugetlb_controller = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = {plugins}
conf_dir = {network}

[plugins."io.containerd.grpc.v1.cri"]
stream_server_address = "127.0.0.1"

[plugins."io.containerd.nri.v1.nri"]
plugin_config_path = {nri_configuration}
plugin_path = {nri_plugins}
"""


@dataclass(frozen=True)
class Machine:
    """The size of the machine that the nodes share."""

    cpus: int
    memory_bytes: int


def containerd_toml(node: Node) -> str:
    return CONTAINERD_TOML.format(
        root=json.dumps(str(node.image_store)),
        socket=json.dumps(str(node.socket)),
        pause=PAUSE_IMAGE,
        plugins=json.dumps(NETWORK_PLUGINS),
        network=json.dumps(str(node.directory / "network")),
        nri_configuration=json.dumps(str(node.directory / "nri" / "conf.d")),
        nri_plugins=json.dumps(str(node.directory / "nri" / "plugins")),
    )


def network_plugins(node: Node) -> dict[str, Any]:
    """The plugins that connect a pod: a route for each instead of a bridge.

    On a bridge, the answer of a Service's pod to its neighbour would bypass the address translation unless the machine
    has br_netfilter.
    """
    addresses = {
        "type": "host-local",
        "dataDir": str(node.directory / "addresses"),
        "ranges": [[{"subnet": node.pod_subnet}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {"type": "ptp", "ipMasq": False, "ipam": addresses},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def kubelet(node: Node, machine: Machine) -> dict[str, Any]:
    """The kubelet's configuration. Each node offers its share of the machine: the rest counts as reserved."""
    count = node.cluster.node_count
    reserved = {
        "cpu": f"{machine.cpus * 1000 * (count - 1) // count}m",
        "memory": f"{machine.memory_bytes * (count - 1) // count // 2**20}Mi",
    }
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "healthzBindAddress": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(credentials.directory(node.cluster) / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{node.socket}",
        "clusterDNS": [node.cluster.dns_address],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        # The machine's own arrangement is left as it is: cgroups below ours, v1 or v2, swap or none.
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "systemReserved": reserved,
        # Images are imported, not pulled: none may be collected. A full disk is the developer's to see to.
        "evictionHard": {"memory.available": "50Mi"},
        "imageGCHighThresholdPercent": 100,
        # For tests: crash loops, status, leases and what volumes hold in seconds instead of minutes.
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
        "nodeStatusUpdateFrequency": "4s",
        "nodeStatusReportFrequency": "20s",
        "nodeLeaseDurationSeconds": 20,
        "syncFrequency": "10s",
        "volumeStatsAggPeriod": "10s",
    }

"""Where everything of one cluster lives: names, addresses, ports and paths, all computed from its name and slot.

Pure: nothing here looks at the machine. `Cluster.slot` keeps the addresses of clusters apart that run side by side:
slot 0 has 10.96.0.0/24 for Services, 10.97.0.0/24 for machine and nodes, 10.244.0.0/16 for pods; slot 1 has
10.96.1.0/24, 10.97.1.0/24, 10.245.0.0/16, and so on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from dev.cluster.errors import ClusterError

DEFAULT_NAME = "default"
MAX_SLOT = 9
MAX_NODES = 9
API_PORT = 6443
# The images that the cluster itself needs; both are made from a binary of its own.
PAUSE_IMAGE = "localhost/cosyvoice-cluster/pause:local"
COREDNS_IMAGE = "localhost/cosyvoice-cluster/coredns:local"
# containerd's socket path is the longest socket of a cluster; the kernel takes 107 bytes.
MAX_SOCKET_PATH = 107
# Every node hides these behind directories of its own.
HIDDEN_ON_NODES = ("/run", "/var/run", "/var/log", "/var/lib/cni", "/var/lib/kubelet", "/dev/shm")


@dataclass(frozen=True)
class Node:
    """One node: a containerd and a kubelet in a mount namespace, with an address and a pod subnet of their own."""

    cluster: Cluster
    index: int

    @property
    def name(self) -> str:
        return f"node{self.index}"

    @property
    def address(self) -> str:
        return f"10.97.{self.cluster.slot}.{10 + self.index}"

    @property
    def pod_subnet(self) -> str:
        return f"10.{244 + self.cluster.slot}.{self.index}.0/24"

    @property
    def cgroup(self) -> str:
        """The node's cgroup relative to the root of every hierarchy."""
        return f"{self.cluster.cgroup}/{self.name}"

    @property
    def directory(self) -> Path:
        return self.cluster.state / self.name

    @property
    def socket(self) -> Path:
        return self.directory / "containerd.sock"

    @property
    def image_store(self) -> Path:
        """containerd's root: outside the state, so that images survive `down` and `up`."""
        return self.cluster.cache / "images" / self.cluster.name / self.name


@dataclass(frozen=True)
class Cluster:
    """A cluster's plan."""

    name: str
    slot: int
    node_count: int
    state_root: Path
    cache: Path
    nodes: tuple[Node, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        if not 1 <= self.node_count <= MAX_NODES:
            raise ClusterError(f"a cluster has 1 to {MAX_NODES} nodes, {self.node_count} were asked for")
        if not 0 <= self.slot <= MAX_SLOT:
            raise ClusterError(f"slot {self.slot} is out of range 0..{MAX_SLOT}: take a cluster down first")
        object.__setattr__(self, "nodes", tuple(Node(self, index) for index in range(1, self.node_count + 1)))
        check_paths(self)

    @property
    def state(self) -> Path:
        return self.state_root / self.name

    @property
    def logs(self) -> Path:
        return self.state / "log"

    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return self.logs / "audit.log"

    @property
    def network_namespace(self) -> Path:
        """A file that holds the network namespace in which everything of the cluster runs."""
        return self.state / "network-namespace"

    @property
    def cgroup(self) -> str:
        return f"cosyvoice-{self.name}"

    @property
    def link(self) -> str:
        """The machine's end of the veth pair into the cluster."""
        return f"cv-{self.name}"

    @property
    def machine_address(self) -> str:
        return f"10.97.{self.slot}.254"

    @property
    def api_address(self) -> str:
        return f"10.97.{self.slot}.1"

    @property
    def api_url(self) -> str:
        return f"https://{self.api_address}:{API_PORT}"

    @property
    def machine_subnet(self) -> str:
        """The subnet of the veth pair: the machine, the API server, the nodes."""
        return f"10.97.{self.slot}.0/24"

    @property
    def service_subnet(self) -> str:
        return f"10.96.{self.slot}.0/24"

    @property
    def api_service_address(self) -> str:
        return f"10.96.{self.slot}.1"

    @property
    def dns_address(self) -> str:
        return f"10.96.{self.slot}.10"

    @property
    def pod_subnet(self) -> str:
        return f"10.{244 + self.slot}.0.0/16"


def check_name(name: str) -> None:
    """Raise ClusterError unless the name can be part of paths, cgroups and links (at most 15 characters with `cv-`)."""
    if not re.fullmatch(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", name):
        raise ClusterError(
            f"cluster name {name!r}: expected 1 to 12 characters a-z, 0-9 and '-', a letter first, no '-' at the end"
        )


def check_paths(cluster: Cluster) -> None:
    """Raise ClusterError for a state or cache directory that the nodes could not use."""
    for path in (cluster.state_root, cluster.cache):
        if not path.is_absolute():
            raise ClusterError(f"{path}: the cluster's directories must be absolute paths")
        for hidden in HIDDEN_ON_NODES:
            if path.is_relative_to(hidden):
                raise ClusterError(f"{path}: each node has a {hidden} of its own, choose a directory outside {hidden}")
    longest = max(len(str(node.socket).encode()) for node in cluster.nodes)
    if longest > MAX_SOCKET_PATH:
        raise ClusterError(
            f"{cluster.state_root}: too long by {longest - MAX_SOCKET_PATH} bytes for the sockets below it "
            f"(the kernel takes {MAX_SOCKET_PATH}): choose a shorter state directory"
        )


def slots(name: str, taken: dict[str, int]) -> tuple[int, ...]:
    """The slots that a cluster may have beside those that exist: its own if it has one, else the free ones.

    The default cluster comes before all others, which leave slot 0 to it.
    """
    if name in taken:
        return (taken[name],)
    first = 0 if name == DEFAULT_NAME else 1
    return tuple(slot for slot in range(first, MAX_SLOT + 1) if slot not in taken.values())

"""Bringing a cluster up: from nothing, or from whatever a killed run left, to Ready nodes."""

from __future__ import annotations

import time
from collections.abc import Callable

from dev.cluster import (
    addons,
    build,
    cgroups,
    control_plane,
    credentials,
    health,
    host,
    images,
    kubectl,
    network,
    nodes,
    registry,
    toolchain,
)
from dev.cluster.down import down
from dev.cluster.modules import KUBERNETES, MODULES
from dev.cluster.plan import Cluster
from dev.cluster.processes import Daemons

API_SECONDS, NODES_SECONDS, DNS_SECONDS = 120.0, 120.0, 120.0


def start(cluster: Cluster, say: Callable[[str], None]) -> None:
    """Start the cluster after clearing what is left of an earlier one; its binaries are built first, if need be.

    A start that fails or is interrupted takes down what it had started; only its logs stay.
    """
    down(cluster)
    if not all(build.is_built(module, cluster.cache) for module in MODULES):
        build.build_all(cluster.cache, toolchain.find_go(cluster.cache, say), say)
    try:
        _start(cluster, say)
    except BaseException:
        down(cluster, keep_logs=True)
        raise


def _start(cluster: Cluster, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    with registry.lock(cluster.state_root, "machine"):
        registry.enter(cluster)
        host.record(cluster.state_root)
    cluster.logs.mkdir()
    daemons = Daemons(cluster, cgroups.create(cluster))
    network.create(cluster)
    credentials.create(cluster)
    _start_storage_and_api(cluster, daemons)
    containerds = {node: nodes.start_containerd(node, daemons) for node in cluster.nodes}
    images.prune(cluster)
    images.load_own(cluster)
    daemons.wait_until("the API server is ready", lambda: health.api_ready(cluster), API_SECONDS, "kube-apiserver")
    say(f"  API server ready after {time.monotonic() - began:.1f} s")
    kubectl.apply(cluster, addons.objects(cluster))
    _start_rest(cluster, daemons)
    for node, pid in containerds.items():
        nodes.start_kubelet(node, pid, daemons)
    daemons.wait_until("the nodes are Ready", lambda: health.nodes_ready(cluster), NODES_SECONDS, "kubelet-node1")
    say(f"  {cluster.node_count} nodes Ready after {time.monotonic() - began:.1f} s")
    manager = "kube-controller-manager"
    daemons.wait_until("CoreDNS is available", lambda: health.dns_ready(cluster), DNS_SECONDS, manager)
    daemons.wait_until("pods can be made", lambda: health.default_account_there(cluster), DNS_SECONDS, manager)
    say(f"  CoreDNS available after {time.monotonic() - began:.1f} s")


def _start_storage_and_api(cluster: Cluster, daemons: Daemons) -> None:
    control_plane.write(cluster)
    _daemon(cluster, daemons, "etcd", "server", control_plane.etcd(cluster))
    _daemon(cluster, daemons, "kube-apiserver", "kube-apiserver", control_plane.api_server(cluster))


def _start_rest(cluster: Cluster, daemons: Daemons) -> None:
    for name, arguments in (
        ("kube-controller-manager", control_plane.controller_manager(cluster)),
        ("kube-scheduler", control_plane.scheduler(cluster)),
        ("kube-proxy", control_plane.proxy(cluster)),
    ):
        _daemon(cluster, daemons, name, name, arguments)


def _daemon(cluster: Cluster, daemons: Daemons, name: str, binary: str, arguments: list[str]) -> None:
    program = build.folder(KUBERNETES, cluster.cache) / binary
    daemons.start(name, network.within(cluster, [str(program), *arguments]))

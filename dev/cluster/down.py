"""Taking a cluster down: every process, mount, link, namespace, cgroup and kernel parameter of it.

Needs no record to be whole: what belongs to a cluster is found by its cgroup and its names, so that it works the same after
a failed start, after everything was killed, and twice.
"""

from __future__ import annotations

import shutil

from dev.cluster import cgroups, host, network, processes, registry
from dev.cluster.plan import Cluster


def down(cluster: Cluster, *, purge: bool = False) -> None:
    """Remove the cluster; with `purge` the images that the next `up` would find, too."""
    clear(cluster)
    shutil.rmtree(cluster.state, ignore_errors=True)
    with registry.lock(cluster.state_root, "machine"):
        if not registry.names(cluster.state_root):
            host.restore(cluster.state_root)
    if purge:
        shutil.rmtree(cluster.cache / "images" / cluster.name, ignore_errors=True)


def clear(cluster: Cluster) -> None:
    """Remove all but the files."""
    processes.end_all(cluster)
    network.remove(cluster)
    cgroups.remove(cluster)

"""Taking a cluster down: every process, mount, link, namespace, cgroup and kernel parameter of it.

Needs no record to be whole: what belongs to a cluster is found by its cgroup and its names, so that it works the same
after a failed start, after everything was killed, and twice.
"""

from __future__ import annotations

import shutil

from dev.cluster import cgroups, host, network, processes, registry
from dev.cluster.plan import Cluster


def down(cluster: Cluster, *, keep_logs: bool = False) -> None:
    """Remove the cluster; what is kept is its images, below the cache, and its logs if asked for."""
    processes.end_all(cluster)
    network.remove(cluster)
    cgroups.remove(cluster)
    for entry in cluster.state.iterdir() if cluster.state.exists() else ():
        if entry.is_dir() and not (keep_logs and entry == cluster.logs):
            shutil.rmtree(entry)
        elif not entry.is_dir():
            entry.unlink()
    if not keep_logs:
        shutil.rmtree(cluster.state, ignore_errors=True)
    with registry.lock(cluster.state_root, "machine"):
        if not registry.names(cluster.state_root):
            host.restore(cluster.state_root)


def forget_images(cluster: Cluster) -> None:
    """Remove the images that the cluster's next start would find."""
    shutil.rmtree(cluster.cache / "images" / cluster.name, ignore_errors=True)

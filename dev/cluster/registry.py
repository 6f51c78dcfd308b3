"""Which clusters this machine has: one directory each below the state root, with a `cluster.json` in it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from dev.cluster import network
from dev.cluster.errors import ClusterError
from dev.cluster.modules import MODULES
from dev.cluster.plan import Cluster, check_name, slots
from dev.cluster.shell import run

RECORD = "cluster.json"


def default_state_root() -> Path:
    return Path(os.environ.get("COSYVOICE_CLUSTER_STATE", "/var/lib/cosyvoice-operator"))


def default_cache() -> Path:
    """Where binaries and images are kept between runs: $XDG_CACHE_HOME or ~/.cache, /cosyvoice-operator."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cosyvoice-operator"


def find(name: str, state_root: Path) -> Cluster | None:
    """The cluster of that name as it was started, or None."""
    check_name(name)
    try:
        noted = json.loads((state_root / name / RECORD).read_text())
    except FileNotFoundError:
        return None
    return Cluster(name, noted["slot"], noted["nodes"], state_root, Path(noted["cache"]))


def names(state_root: Path) -> list[str]:
    return sorted(record.parent.name for record in state_root.glob(f"*/{RECORD}"))


def plan(name: str, node_count: int, state_root: Path, cache: Path) -> Cluster:
    """A plan for a cluster that is about to start, in none of the subnets that are used already."""
    others = (find(other, state_root) for other in names(state_root))
    taken = {other.name: other.slot for other in others if other is not None}
    routes = run(["ip", "route"])
    for slot in slots(name, taken):
        cluster = Cluster(name, slot, node_count, state_root, cache)
        if not network.conflicts(cluster, routes):
            return cluster
    raise ClusterError(
        f"no addresses are left for cluster {name!r}: the clusters {', '.join(sorted(taken)) or '(none)'} and the "
        "machine's own routes (`ip route`) use them all. Take another cluster down"
    )


def enter(cluster: Cluster) -> None:
    """Record the cluster, which from then on exists for `find`."""
    cluster.state.mkdir(parents=True, exist_ok=True)
    noted = {
        "slot": cluster.slot,
        "nodes": cluster.node_count,
        "cache": str(cluster.cache),
        "binaries": [module.key for module in MODULES],
    }
    (cluster.state / RECORD).write_text(json.dumps(noted))


def is_current(cluster: Cluster) -> bool:
    """Whether the cluster was started from the binaries that this tree asks for."""
    noted = json.loads((cluster.state / RECORD).read_text())
    return bool(noted.get("binaries") == [module.key for module in MODULES])


@contextlib.contextmanager
def lock(state_root: Path, name: str) -> Iterator[None]:
    """Hold a lock of that name; whoever else wants it waits."""
    state_root.mkdir(parents=True, exist_ok=True)
    with (state_root / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

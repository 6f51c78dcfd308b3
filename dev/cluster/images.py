"""Images of the cluster's nodes: importing archives, only into the nodes that do not have them yet."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dev.cluster import build, cgroups, registry, stored, toolchain
from dev.cluster.archive import write as write_archive
from dev.cluster.errors import ClusterError
from dev.cluster.modules import CONTAINERD, COREDNS, PAUSE
from dev.cluster.plan import COREDNS_IMAGE, DEFAULT_NAME, PAUSE_IMAGE, Cluster, Node
from dev.cluster.shell import run

IMPORT_SECONDS = 600.0


def load(archive: Path, ref: str, image_id: str, cluster: Cluster | None = None) -> bool:
    """Import a docker or OCI archive into every node that lacks this very image; True if anything was imported.

    `ref` is the image's name in the archive, `image_id` the digest of its configuration (`sha256:…`).
    """
    nodes = (cluster or running()).nodes
    lacking = [node for node in nodes if stored_id(node, ref) != image_id]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda node: _import(node, archive, ref, image_id), lacking))
    return bool(lacking)


def present(ref: str, image_id: str | None = None, cluster: Cluster | None = None) -> bool:
    """True if every node has an image of that name (and, if given, of that ID)."""
    found = [stored_id(node, ref) for node in (cluster or running()).nodes]
    return all(one is not None and image_id in (None, one) for one in found)


def running(name: str = DEFAULT_NAME) -> Cluster:
    """The cluster of that name; ClusterError if it is not up."""
    found = registry.find(name, registry.default_state_root())
    if found is None or not cgroups.members(found):
        raise ClusterError(f"the local cluster {name!r} is not up: bring it up with `make cluster-up`")
    return found


def stored_id(node: Node, ref: str) -> str | None:
    """The ID of the node's image of that name; empty if it was imported otherwise, None without such an image."""
    found = stored.parse(_ctr(node, "images", "list", f"name=={full_name(ref)}"))
    return found[0].image_id if found else None


def prune(cluster: Cluster) -> None:
    """Remove builds that are out of date. For a start, when no pod needs any of them yet."""
    for node in cluster.nodes:
        for image in stored.outdated(stored.parse(_ctr(node, "images", "list"))):
            _remove(node, image.name, image.image_id)


def load_own(cluster: Cluster) -> None:
    """Make and import the images that the cluster itself needs."""
    for module, reference in ((PAUSE, PAUSE_IMAGE), (COREDNS, COREDNS_IMAGE)):
        binary = build.folder(module, cluster.cache) / module.binaries[0]
        target = cluster.state / f"{binary.name}.tar"
        image_id = write_archive(target, reference, binary, toolchain.processor())
        load(target, reference, image_id, cluster)
        target.unlink()


def full_name(ref: str) -> str:
    """The name under which containerd and the kubelet know a reference: with registry and tag."""
    first, slash, _ = ref.partition("/")
    if not slash:
        ref = f"docker.io/library/{ref}"
    elif "." not in first and ":" not in first and first != "localhost":
        ref = f"docker.io/{ref}"
    return ref if ":" in ref.rsplit("/", 1)[-1] or "@" in ref else f"{ref}:latest"


def _import(node: Node, archive: Path, ref: str, image_id: str) -> None:
    superseded = stored_id(node, ref)
    _ctr(node, "images", "import", str(archive), seconds=IMPORT_SECONDS)
    if stored_id(node, ref) is None:
        raise ClusterError(
            f"{archive} was imported into {node.name} and holds no image {full_name(ref)}: check its tag"
        )
    labels = (f"{stored.ID_LABEL}={image_id}", f"{stored.TIME_LABEL}={time.time():.0f}")
    _ctr(node, "images", "label", full_name(ref), *labels)
    if superseded:
        _remove(node, superseded)


def _remove(node: Node, *names: str) -> None:
    """Remove names of an image; its ID is one too, under which the node files it as well."""
    _ctr(node, "images", "remove", *names)


def _ctr(node: Node, *arguments: str, seconds: float = 60.0) -> str:
    binary = build.folder(CONTAINERD, node.cluster.cache) / "ctr"
    return run([binary, "--address", node.socket, "--namespace", "k8s.io", *arguments], timeout=seconds)

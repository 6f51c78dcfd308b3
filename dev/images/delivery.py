"""Hand built images to those who run them: the local cluster, or a registry."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from cosyvoice_worker._version import __version__
from dev.cluster import images as cluster_images
from dev.cluster.errors import ClusterError
from dev.images import locks, references
from dev.images.errors import ImageError
from dev.images.layout import Layout
from dev.images.references import Image, References
from dev.images.storage import open_storage


def import_into_cluster(layout: Layout, image: Image) -> str:
    """Put an image onto every node of the local cluster that lacks it; says what was done."""
    try:
        cluster = cluster_images.running()
    except ClusterError:
        return f"{image.reference}: the local cluster is not up, not imported"
    start = time.monotonic()
    image_id = f"sha256:{image.id}"
    if cluster_images.present(image.reference, image_id, cluster):
        return f"{image.reference}: in the local cluster already"
    with locks.held(layout.use_lock, shared=True), TemporaryDirectory(dir=layout.scratch) as folder:
        archive = Path(folder) / f"{image.name}.tar"
        # Uncompressed: the fastest way through a local disk.
        open_storage(layout).output("push", "--quiet", image.id, f"docker-archive:{archive}:{image.reference}")
        try:
            cluster_images.load(archive, image.reference, image_id, cluster)
        except ClusterError as error:
            raise ImageError(f"{image.reference} could not be imported into the local cluster: {error}") from error
    return f"{image.reference}: imported into the local cluster in {time.monotonic() - start:.1f} s"


def push(layout: Layout, registry: str) -> References:
    """Push what was built last to `registry` ("registry.example.com/team") and return the references to use there."""
    storage = open_storage(layout)
    local = references.read(layout.references)
    remote = References(
        operator=references.image("operator", __version__, local.operator.id, registry),
        worker=references.image("worker", __version__, local.worker.id, registry),
    )
    for image in (remote.operator, remote.worker):
        print(f"Pushing {image.reference} ...", flush=True)
        storage.stream("push", *tls_options(registry), image.id, f"docker://{image.reference}")
    return remote


def tls_options(registry: str) -> list[str]:
    """As container engines do, speak plain HTTP to a registry on this machine."""
    host_name = registry.split("/", maxsplit=1)[0].rsplit(":", maxsplit=1)[0]
    return ["--tls-verify=false"] if host_name in {"localhost", "127.0.0.1", "[::1]"} else []

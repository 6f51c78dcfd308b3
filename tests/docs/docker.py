"""`docker build` and `docker push` where there is no Docker: buildah builds the same Dockerfile, and what is pushed is
put where the nodes of the local cluster would have pulled it to.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from dev.cluster import images as cluster_images
from dev.images import base, host, locks
from dev.images.layout import EPOCH, default_layout
from dev.images.storage import open_storage


def main() -> None:
    """Do what the command line says."""
    top = argparse.ArgumentParser(prog="docker")
    each = top.add_subparsers(required=True)
    build = each.add_parser("build")
    build.add_argument("-f", "--file", required=True)
    build.add_argument("-t", "--tag", required=True)
    build.add_argument("--build-arg", action="append", default=[])
    build.add_argument("context")
    build.set_defaults(action=_build)
    push = each.add_parser("push")
    push.add_argument("reference")
    push.set_defaults(action=_push)
    options = top.parse_args()
    options.action(options)


def _build(options: argparse.Namespace) -> None:
    layout = default_layout()
    storage = open_storage(layout)
    with locks.held(layout.build_lock, on_wait="Another image build is running, waiting for it ..."):
        base.ensure(storage)
        with host.pip_secrets() as secrets:
            storage.stream(
                "bud",
                "--quiet",
                "--layers",
                "--isolation=chroot",
                "--network=host",
                "--pull-never",
                "--format=docker",
                f"--timestamp={EPOCH}",
                *(f"--secret=id={key},src={path}" for key, path in secrets.items()),
                *(f"--build-arg={word}" for word in options.build_arg),
                f"--file={options.file}",
                f"--tag={options.tag}",
                options.context,
            )


def _push(options: argparse.Namespace) -> None:
    layout = default_layout()
    storage = open_storage(layout)
    image_id = f"sha256:{storage.image_id(options.reference)}"
    if cluster_images.present(options.reference, image_id):
        return
    with locks.held(layout.use_lock, shared=True), tempfile.TemporaryDirectory(dir=layout.scratch) as folder:
        archive = Path(folder) / "image.tar"
        storage.output("push", "--quiet", options.reference, f"docker-archive:{archive}:{options.reference}")
        cluster_images.load(archive, options.reference, image_id)


if __name__ == "__main__":
    main()

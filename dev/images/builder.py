"""Build the Dockerfiles and hand the images to the local cluster or to a registry."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from cosyvoice_worker._version import __version__
from dev.images import base, host, locks, references
from dev.images.layout import EPOCH, REPOSITORY, Layout
from dev.images.references import Image
from dev.images.storage import Storage, clear_leftovers, open_storage, remove_storage

# buildah announces a step of the Dockerfile so, after its stage: "[2/3] STEP 1/4: COPY ..."
VERSION_LABEL = "org.opencontainers.image.version"
STEP = re.compile(r"(\[\d+/\d+\] )?STEP ")


@dataclass(frozen=True, slots=True)
class Built:
    """One finished build and what there is to say about it."""

    image: Image
    size: str
    layers: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.image.reference}  {self.size}, {self.layers} layers, built in {self.seconds:.1f} s"


def build(layout: Layout, kinds: Sequence[str] = references.KINDS, *, renew_base: bool = False) -> list[Built]:
    """Build the images of `kinds`; `renew_base` starts from an empty storage and the newest Debian packages."""
    host.prepare()
    storage = open_storage(layout)
    with locks.held(layout.build_lock, on_wait="Another image build is running, waiting for it ..."):
        clear_leftovers(storage)
        if renew_base:
            remove_storage(storage)
            layout.base_archive.unlink(missing_ok=True)
        base.ensure(storage)
        built = {kind: _build_one(storage, kind) for kind in kinds}
        ours = {kind: result.image for kind, result in built.items() if kind in references.KINDS}
        references.write(layout.references, ours)
    return list(built.values())


def _build_one(storage: Storage, kind: str) -> Built:
    name = references.working_name(kind)
    print(f"Building {references.repository(kind)} ...", flush=True)
    start = time.monotonic()
    with host.pip_secrets() as secrets:
        arguments = build_arguments(kind, name, {key: str(path) for key, path in secrets.items()})
        storage.logged(*arguments, log=storage.layout.build_log(kind), shown=STEP)
    seconds = time.monotonic() - start
    image = references.image(kind, __version__, storage.image_id(name))
    return Built(image, storage.image_size(name), storage.image_config(name).layers, seconds)


def build_arguments(kind: str, name: str, secrets: dict[str, str]) -> list[str]:
    """buildah's counterpart of `docker build -f Dockerfile.<kind> .`, and with DEVICE=cuda that of the GPU worker."""
    dockerfile, device = ("worker", ["--build-arg=DEVICE=cuda"]) if kind == references.CUDA_WORKER else (kind, [])
    return [
        "bud",
        "--layers",
        "--isolation=chroot",
        "--network=host",
        "--pull-never",
        "--format=docker",
        f"--timestamp={EPOCH}",
        *(f"--secret=id={key},src={path}" for key, path in secrets.items()),
        # No REVISION: the same content has to give the same image, whatever commit it is in.
        f"--build-arg=VERSION={__version__}",
        # Once more: buildah takes the step that labels from its cache, whatever VERSION was when it was made.
        f"--label={VERSION_LABEL}={__version__}",
        *device,
        f"--file={REPOSITORY / f'Dockerfile.{dockerfile}'}",
        f"--tag={name}",
        str(REPOSITORY),
    ]

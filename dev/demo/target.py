"""The cluster of the demo: the local one, brought up here, or the user's (KUBECONFIG and IMAGE_REGISTRY)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker._version import __version__
from dev.cluster import kubectl as local_kubectl
from dev.cluster import registry
from dev.cluster.plan import DEFAULT_NAME
from dev.images import references
from dev.images.layout import default_layout
from dev.kubectl import Kubectl


class TargetError(Exception):
    """No cluster to run on; the message says what to do."""


@dataclass(frozen=True)
class Target:
    """A cluster with both images within its reach."""

    kubectl: Kubectl
    operator_image: str
    worker_image: str
    local: bool


def find_local() -> Target:
    """The local cluster as it runs, with the images built last. Raises TargetError where there is none."""
    cluster = registry.find(DEFAULT_NAME, registry.default_state_root())
    if cluster is None:
        raise TargetError("the local cluster is down: `make cluster-up` brings it up")
    images = references.read(default_layout().references)
    return Target(
        kubectl=Kubectl(str(local_kubectl.path(cluster)), cluster.kubeconfig),
        operator_image=images.operator.reference,
        worker_image=images.worker.reference,
        local=True,
    )


def prepare() -> Target:
    """Bring the target up: packages, cluster and images, each only where something is missing."""
    if os.environ.get("IMAGE_REGISTRY"):
        return _prepare_existing(os.environ["IMAGE_REGISTRY"])
    _module("dev.cluster", "up", "--install")
    _module("dev.images", "build")
    return find_local()


def _prepare_existing(image_registry: str) -> Target:
    program = shutil.which("kubectl")
    kubeconfig = Path(os.environ.get("KUBECONFIG") or "~/.kube/config").expanduser()
    if program is None:
        raise TargetError("kubectl is not on the PATH; it is needed for a cluster of yours")
    if not kubeconfig.is_file():
        raise TargetError(
            f"KUBECONFIG={kubeconfig} is no file; IMAGE_REGISTRY is set, so a cluster of yours is expected"
        )
    _module("dev.images", "build")
    _module("dev.images", "push")
    images = references.read(default_layout().references)
    return Target(
        kubectl=Kubectl(program, kubeconfig),
        operator_image=references.image("operator", __version__, images.operator.id, image_registry).reference,
        worker_image=references.image("worker", __version__, images.worker.id, image_registry).reference,
        local=False,
    )


def _module(name: str, *arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", name, *arguments], stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise TargetError(f"`python -m {name} {' '.join(arguments)}` failed; its message is above")

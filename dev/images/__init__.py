"""The operator's and the worker's image: built from the Dockerfiles without a container engine or a registry.

For the demo and the tests: `refs` names what was built last, `run` runs a command in it, `config` tells its settings.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from dev.images import delivery, inside, references, sandbox
from dev.images.bundle import Mount
from dev.images.errors import ImageError
from dev.images.layout import default_layout
from dev.images.packages import packages_for_tests
from dev.images.references import Image, References
from dev.images.storage import ImageConfig, open_storage

__all__ = [
    "Image",
    "ImageConfig",
    "ImageError",
    "Mount",
    "References",
    "config",
    "packages_for_tests",
    "push",
    "refs",
    "run",
    "run_tests",
]


def refs() -> References:
    """What was built last; ImageError if nothing was."""
    return references.read(default_layout().references)


def config(kind: str) -> ImageConfig:
    """The configuration of the newest image of `kind` ("operator", "worker")."""
    return open_storage(default_layout()).image_config(getattr(refs(), kind).id)


def run(
    kind: str,
    arguments: Sequence[str],
    *,
    mounts: Sequence[Mount] = (),
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command line in the newest image of `kind`; see `sandbox.run`."""
    return sandbox.run(default_layout(), kind, arguments, mounts=mounts, env=env, timeout=timeout)


def run_tests(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run pytest inside the worker image on paths of this repository; see `inside.run_tests`."""
    return inside.run_tests(default_layout(), arguments)


def push(registry: str) -> References:
    """Push what was built last to a registry; see `delivery.push`."""
    return delivery.push(default_layout(), registry)

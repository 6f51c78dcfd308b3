"""Fake GPUs for as long as a test needs them, and what a worker asks for that wants one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dev.cluster import gpus, images
from dev.playground import RESOURCES

WANTS_ONE = {gpus.RESOURCE: "1"}


@contextlib.contextmanager
def fake_gpus(*nodes: str) -> Iterator[None]:
    """One GPU on each of the nodes, and none elsewhere."""
    local = images.running()
    gpus.set_gpus(local, 0)
    gpus.set_gpus(local, 1, nodes)
    try:
        yield
    finally:
        gpus.set_gpus(local, 0)


def add_one(node: str) -> None:
    """A second GPU on a node that has one."""
    gpus.set_gpus(images.running(), 2, (node,))


def resources() -> dict[str, Any]:
    """The resources of a worker with a GPU of its own."""
    return {**RESOURCES, "limits": {**RESOURCES["limits"], **WANTS_ONE}}

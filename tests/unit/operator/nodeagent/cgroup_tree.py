"""A node's cgroups of version 2 as a tree of ordinary files, and worker containers in it."""

from __future__ import annotations

import os
from pathlib import Path

from cosyvoice_operator.names import AGENT_MARK
from cosyvoice_operator.nodeagent.pods import WorkerContainer

UID = "0b1f3c5e-7a9d-4c2b-8e6f-1a2b3c4d5e6f"
ID = "ab" * 32
GIB = 2**30


def worker(wanted: int | None = GIB, uid: str = UID, container_id: str = ID) -> WorkerContainer:
    return WorkerContainer(namespace="speech", pod="narrator-a", uid=uid, container_id=container_id, wanted=wanted)


def make_tree(folder: Path) -> Path:
    root = folder / "cgroup"
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpu memory\n")
    return root


def make_container(root: Path, path: str = f"kubepods/burstable/pod{UID}/{ID}", high: str = "max") -> Path:
    directory = root / path
    directory.mkdir(parents=True)
    (directory / "memory.high").write_text(f"{high}\n")
    return directory


def high_of(directory: Path) -> str:
    return (directory / "memory.high").read_text().strip()


def is_marked(directory: Path) -> bool:
    return AGENT_MARK in os.listxattr(directory)

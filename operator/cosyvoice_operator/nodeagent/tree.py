"""Where the kubelet and the runtime put a container's cgroup.

driver     pod                                                          container
cgroupfs   kubepods/burstable/pod<uid>/                                 <id>/ or crio-<id>/
systemd    kubepods.slice/…/kubepods-burstable-pod<uid, with _>.slice/  cri-containerd-<id>.scope/ or crio-<id>.scope/

Both may lie deeper, below a root of the kubelet's own. Names are compared and never made into paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

# Below the root: a root of the kubelet's, a slice of it, kubepods, the quality of service, the pod; and one to spare.
MAX_DEPTH = 6

_POD = re.compile("(^|-)pod[0-9a-f]{8}")
_SLICE, _SCOPE, _SERVICE = ".slice", ".scope", ".service"


def is_unified(root: Path) -> bool:
    """Whether `root` is of cgroup version 2: only that has memory.high."""
    return (root / "cgroup.controllers").is_file()


def find_container(root: Path, uid: str, container_id: str) -> Path | None:
    """The cgroup of the container in the pod with `uid`, or None while there is none below `root`."""
    pods = {f"pod{uid}", f"pod{uid.replace('-', '_')}{_SLICE}"}
    for directory in _walk(root, MAX_DEPTH):
        if directory.name in pods or any(directory.name.endswith(f"-{pod}") for pod in pods):
            for child in _children(directory):
                name = child.name.removesuffix(_SCOPE)
                if name == container_id or name.endswith(f"-{container_id}"):
                    return child
    return None


def _walk(directory: Path, depth: int) -> Iterator[Path]:
    """The cgroups that pods may be in or are, down to `depth`; without what services and sessions hold."""
    for child in _children(directory):
        if not child.name.endswith((_SCOPE, _SERVICE)):
            yield child
            if depth > 1 and not _POD.search(child.name):
                yield from _walk(child, depth - 1)


def _children(directory: Path) -> list[Path]:
    """The cgroups right below; none of one that has just gone."""
    try:
        return sorted(entry for entry in directory.iterdir() if entry.is_dir() and not entry.is_symlink())
    except FileNotFoundError:
        return []

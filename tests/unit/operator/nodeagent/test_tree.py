"""A container's cgroup is found wherever kubelets and runtimes put it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosyvoice_operator.nodeagent.tree import find_container, is_unified
from tests.unit.operator.nodeagent.cgroup_tree import ID, UID, make_container, make_tree

UNDERSCORED = UID.replace("-", "_")
SLICES = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORED}.slice"
LAYOUTS = {
    "cgroupfs, burstable": f"kubepods/burstable/pod{UID}/{ID}",
    "cgroupfs, besteffort": f"kubepods/besteffort/pod{UID}/{ID}",
    "cgroupfs, guaranteed": f"kubepods/pod{UID}/{ID}",
    "cgroupfs, CRI-O": f"kubepods/burstable/pod{UID}/crio-{ID}",
    "cgroupfs, a root of the kubelet's own": f"node1/kubepods/burstable/pod{UID}/{ID}",
    "systemd, containerd": f"{SLICES}/cri-containerd-{ID}.scope",
    "systemd, CRI-O": f"{SLICES}/crio-{ID}.scope",
    "systemd, Docker": f"{SLICES}/docker-{ID}.scope",
    "systemd, guaranteed": f"kubepods.slice/kubepods-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope",
    "systemd, below a slice of the kubelet's": (
        f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
        f"kubelet-kubepods-burstable-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope"
    ),
}


@pytest.mark.parametrize("path", LAYOUTS.values(), ids=LAYOUTS)
def test_the_container_is_found_in_every_layout(tmp_path: Path, path: str) -> None:
    root = make_tree(tmp_path)
    made = make_container(root, path)
    make_container(root, f"kubepods/burstable/pod{UID[:-1]}0/{ID[:-1]}0")
    make_container(root, f"system.slice/{ID}.service")

    assert find_container(root, UID, ID) == made


@pytest.mark.parametrize(
    "path",
    [
        f"kubepods/burstable/pod{UID[:-1]}0/{ID}",
        f"kubepods/burstable/pod{UID}/{'cd' * 32}",
        f"user.slice/session-1.scope/pod{UID}/{ID}",
        f"1/2/3/4/5/6/pod{UID}/{ID}",
        ID,
    ],
    ids=["of another pod", "another container", "in a session", "too deep", "in no pod"],
)
def test_what_is_not_the_container_is_not_taken_for_it(tmp_path: Path, path: str) -> None:
    root = make_tree(tmp_path)
    make_container(root, path)

    assert find_container(root, UID, ID) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    root = make_tree(tmp_path)
    elsewhere = make_container(tmp_path / "elsewhere")
    (root / "kubepods").symlink_to(elsewhere.parents[2])

    assert find_container(root, UID, ID) is None


def test_only_version_2_counts(tmp_path: Path) -> None:
    assert is_unified(make_tree(tmp_path))
    assert not is_unified(tmp_path)

"""Which daemons make a cluster complete."""

from __future__ import annotations

from dev.cluster.processes import expected


def test_every_node_has_a_runtime_and_a_kubelet() -> None:
    assert {name: count for name, count in expected(3).items() if count == 3} == {"containerd": 3, "kubelet": 3}


def test_names_are_as_long_as_the_kernel_keeps_them() -> None:
    assert max(len(name) for name in expected(1)) == 15

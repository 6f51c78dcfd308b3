"""Reading what others print, and what users type."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.cluster import network
from dev.cluster.__main__ import parser
from dev.cluster.images import full_name
from dev.cluster.plan import Cluster


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1", "docker.io/library/busybox:1"),
        ("team/tool:1", "docker.io/team/tool:1"),
        ("localhost/tool", "localhost/tool:latest"),
        ("localhost:5000/tool:1", "localhost:5000/tool:1"),
        ("registry.example.com/a/b@sha256:00", "registry.example.com/a/b@sha256:00"),
    ],
)
def test_images_are_looked_up_by_their_full_name(reference: str, name: str) -> None:
    assert full_name(reference) == name


def test_mounts_below_a_directory_are_found_in_the_order_they_were_made() -> None:
    mountinfo = (
        "22 1 8:1 / / rw - ext4 /dev/vda rw\n"
        "40 22 0:4 net:[1] /var/lib/x/default/network-namespace rw - nsfs nsfs rw\n"
        "41 22 0:9 / /var/lib/xy rw - tmpfs tmpfs rw\n"
        "42 22 0:9 / /var/lib/x/default/a\\040b rw - tmpfs tmpfs rw\n"
    )

    assert network.mounts_below(Path("/var/lib/x"), mountinfo) == [
        Path("/var/lib/x/default/network-namespace"),
        Path("/var/lib/x/default/a b"),
    ]


@pytest.mark.parametrize(
    ("route", "conflict"),
    [
        ("10.96.0.0/24 via 10.0.0.1 dev eth0", True),
        ("10.97.0.7 dev eth0 scope link", True),
        ("10.244.3.0/24 via 192.0.2.9 dev cni0", True),
        ("10.97.0.0/24 dev cv-default proto kernel scope link src 10.97.0.254", False),
        ("10.97.0.0/24 dev cv-default-2 proto kernel", True),
        ("10.0.0.0/8 dev tun0", False),
        ("10.97.1.0/24 dev cv-other", False),
        ("default via 192.0.2.1 dev eth0", False),
        ("", False),
    ],
)
def test_routes_into_the_clusters_subnets_are_conflicts(route: str, conflict: bool) -> None:
    cluster = Cluster("default", 0, 2, Path("/var/lib/x"), Path("/c"))

    assert network.conflicts(cluster, f"{route}\n192.0.2.0/24 dev eth0\n") == ([route] if conflict else [])


@pytest.mark.parametrize("command", ["build", "up", "down", "status", "env"])
def test_every_command_works_on_the_default_cluster_unless_another_is_named(command: str) -> None:
    assert parser().parse_args([command]).name == "default"
    assert parser().parse_args([command, "--name", "trial"]).name == "trial"


def test_up_starts_two_nodes_unless_told_otherwise() -> None:
    assert parser().parse_args(["up"]).nodes == 2

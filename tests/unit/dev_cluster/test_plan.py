"""Names, addresses and paths of a cluster."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev.cluster.errors import ClusterError
from dev.cluster.plan import MAX_NODES, MAX_SLOT, Cluster, slots


def plan(name: str = "default", slot: int = 0, nodes: int = 2, state: str = "/var/lib/x", cache: str = "/c") -> Cluster:
    return Cluster(name, slot, nodes, Path(state), Path(cache))


@given(slot=st.integers(0, MAX_SLOT), nodes=st.integers(1, MAX_NODES))
def test_every_address_of_a_cluster_is_its_own(slot: int, nodes: int) -> None:
    cluster = plan(slot=slot, nodes=nodes)

    addresses = [cluster.api_address, cluster.machine_address, *(node.address for node in cluster.nodes)]

    assert len({ip_address(one) for one in addresses}) == nodes + 2
    assert {ip_address(cluster.dns_address), ip_address(cluster.api_service_address)} <= set(
        ip_network(cluster.service_subnet)
    )
    for node in cluster.nodes:
        assert ip_network(node.pod_subnet).subnet_of(ip_network(cluster.pod_subnet))


def test_clusters_side_by_side_share_no_subnet() -> None:
    clusters = [plan(slot=slot) for slot in range(MAX_SLOT + 1)]

    for one, other in combinations(clusters, 2):
        assert not ip_network(one.pod_subnet).overlaps(ip_network(other.pod_subnet))
        assert not ip_network(one.service_subnet).overlaps(ip_network(other.service_subnet))


def test_nodes_of_a_cluster_share_no_pod_subnet_cgroup_or_directory() -> None:
    nodes = plan(nodes=MAX_NODES).nodes

    for attribute in ("pod_subnet", "cgroup", "directory", "socket", "image_store", "name"):
        assert len({getattr(node, attribute) for node in nodes}) == MAX_NODES


def test_the_link_fits_into_what_the_kernel_takes() -> None:
    assert len(plan(name="a" * 12).link) == 15


def test_images_are_kept_outside_the_state_that_down_removes() -> None:
    cluster = plan()

    assert not any(node.image_store.is_relative_to(cluster.state_root) for node in cluster.nodes)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": "Default"}, "cluster name 'Default': expected 1 to 12 characters"),
        ({"name": "../x"}, "cluster name '../x'"),
        ({"name": "a-"}, "cluster name 'a-'"),
        ({"name": "a" * 13}, "cluster name"),
        ({"nodes": 0}, "a cluster has 1 to 9 nodes, 0 were asked for"),
        ({"nodes": 10}, "a cluster has 1 to 9 nodes, 10 were asked for"),
        ({"slot": 10}, "slot 10 is out of range 0..9"),
        ({"state": "here"}, "here: the cluster's directories must be absolute paths"),
        ({"state": "/run/x"}, "/run/x: each node has a /run of its own, choose a directory outside /run"),
        ({"cache": "/dev/shm/x"}, "/dev/shm/x: each node has a /dev/shm of its own"),
        ({"state": "/" + "d" * 90}, "too long by 14 bytes for the sockets below it"),
    ],
)
def test_a_plan_that_cannot_work_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ClusterError) as refused:
        plan(**wrong)

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("name", "taken", "first"),
    [
        ("default", {}, 0),
        ("default", {"a": 1}, 0),
        ("a", {}, 1),
        ("a", {"a": 5}, 5),
        ("b", {"a": 1, "default": 0}, 2),
        ("b", {"c": 2, "default": 0}, 1),
    ],
)
def test_a_cluster_gets_the_first_free_slot_or_its_own(name: str, taken: dict[str, int], first: int) -> None:
    assert slots(name, taken)[0] == first


def test_there_may_be_no_slot_left() -> None:
    assert slots("another", {f"c{slot}": slot for slot in range(1, MAX_SLOT + 1)}) == ()

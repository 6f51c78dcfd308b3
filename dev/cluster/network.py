"""The cluster's network: one network namespace for everything, joined to the machine by a veth pair.

The namespace keeps the cluster's addresses, nftables rules, links and sysctls away from the machine, and takes them all
with it when it goes. The machine reaches nodes, Services and pods through routes over its end of the pair.
"""

from __future__ import annotations

import subprocess
from ipaddress import IPv4Network
from pathlib import Path

from dev.cluster.plan import Cluster
from dev.cluster.shell import run

UPLINK = "uplink"


def create(cluster: Cluster) -> None:
    namespace = cluster.network_namespace
    namespace.touch()
    run(["unshare", f"--net={namespace}", "true"])
    run(["ip", "link", "add", cluster.link, "type", "veth", "peer", "name", UPLINK, "netns", namespace])
    outside = [
        ["ip", "address", "add", f"{cluster.machine_address}/24", "dev", cluster.link],
        ["ip", "link", "set", cluster.link, "up"],
        ["ip", "route", "add", cluster.service_subnet, "via", cluster.api_address],
        ["ip", "route", "add", cluster.pod_subnet, "via", cluster.api_address],
    ]
    inside = [
        ["ip", "link", "set", "lo", "up"],
        ["ip", "link", "set", UPLINK, "up"],
        *(["ip", "address", "add", f"{address}/24", "dev", UPLINK] for address in _addresses(cluster)),
        ["ip", "route", "add", "default", "via", cluster.machine_address],
        ["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"],
    ]
    for command in outside:
        run(command)
    for command in inside:
        run(within(cluster, command))


def within(cluster: Cluster, argv: list[str]) -> list[str]:
    """The command that runs `argv` in the cluster's network namespace."""
    return ["nsenter", f"--net={cluster.network_namespace}", "--", *argv]


def remove(cluster: Cluster) -> None:
    """Remove the veth pair and let go of the namespace. Nothing to remove is fine."""
    if Path("/sys/class/net", cluster.link).exists():
        subprocess.run(["ip", "link", "delete", cluster.link], check=False, capture_output=True)
    for mount in reversed(mounts_below(cluster.state, Path("/proc/self/mountinfo").read_text())):
        run(["umount", mount])


def mounts_below(directory: Path, mountinfo: str) -> list[Path]:
    """The mount points at or below a directory, in the order they were mounted."""
    points = [Path(line.split()[4].replace("\\040", " ")) for line in mountinfo.splitlines()]
    return [point for point in points if point.is_relative_to(directory)]


def conflicts(cluster: Cluster, routes: str) -> list[str]:
    """Those of the machine's routes (as `ip route` prints them) that lead elsewhere within the cluster's subnets.

    A wider route, such as a VPN's to 10.0.0.0/8, is no conflict: the more specific one wins.
    """
    subnets = [IPv4Network(subnet) for subnet in (cluster.service_subnet, cluster.pod_subnet, cluster.machine_subnet)]
    found = []
    for line in routes.splitlines():
        words = line.split()
        if not words or not words[0][0].isdigit() or f" dev {cluster.link} " in f"{line} ":
            continue
        if any(IPv4Network(words[0]).subnet_of(subnet) for subnet in subnets):
            found.append(line)
    return found


def _addresses(cluster: Cluster) -> list[str]:
    return [cluster.api_address, *(node.address for node in cluster.nodes)]

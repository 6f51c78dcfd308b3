"""What the machine must have: Debian or Ubuntu, root, and some of the distribution's packages."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from dev.cluster.errors import ClusterError
from dev.cluster.node_config import NETWORK_PLUGINS

# The package that has it, for every program that is run.
PROGRAMS = {
    "ip": "iproute2",
    "nft": "nftables",
    "runc": "runc",
    "openssl": "openssl",
    "mount": "mount",
    "umount": "mount",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}
PLUGIN, PLUGIN_PACKAGE = "ptp", "containernetworking-plugins"
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def missing_packages() -> list[str]:
    missing = {package for program, package in PROGRAMS.items() if shutil.which(program, path=SEARCH_PATH) is None}
    if not any(Path(folder, PLUGIN).exists() for folder in NETWORK_PLUGINS):
        missing.add(PLUGIN_PACKAGE)
    return sorted(missing)


def check_root() -> None:
    if os.geteuid() != 0:
        raise ClusterError(
            "the local cluster makes namespaces, cgroups and network links: it needs root on Debian or Ubuntu. "
            "Run it with sudo, or use a cluster that you have"
        )


def check(missing: list[str], *, install: bool, say: Callable[[str], None]) -> None:
    """Raise ClusterError if packages are missing, or install them when asked to."""
    if not missing:
        return
    command = f"apt-get update && apt-get install --yes --no-install-recommends {' '.join(missing)}"
    if not install:
        raise ClusterError(f"missing packages: {', '.join(missing)}. Install them (or add --install): {command}")
    if shutil.which("apt-get") is None:
        raise ClusterError(f"missing packages: {', '.join(missing)}, and there is no apt-get here to install them with")
    say(f"Installing missing packages: {command}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(["sh", "-c", command], env=environment, stdout=subprocess.DEVNULL, check=False)
    if done.returncode or missing_packages():
        raise ClusterError(f"`{command}` did not install {', '.join(missing_packages() or missing)}")

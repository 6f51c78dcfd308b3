"""What the machine must have."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dev.cluster import requirements
from dev.cluster.errors import ClusterError

PACKAGES = Path(__file__).parents[3] / "dev" / "packages.sh"


def test_every_package_the_cluster_needs_is_in_the_list_that_a_fresh_machine_installs() -> None:
    listed = subprocess.run([PACKAGES, "list"], capture_output=True, text=True, check=True).stdout.split()

    assert {*requirements.PROGRAMS.values(), requirements.PLUGIN_PACKAGE} <= set(listed)


def test_missing_packages_are_named_with_the_command_that_installs_them() -> None:
    with pytest.raises(ClusterError) as refused:
        requirements.check(["nftables", "runc"], install=False, say=print)

    assert str(refused.value) == (
        "missing packages: nftables, runc. Install them (or add --install): "
        "apt-get update && apt-get install --yes --no-install-recommends nftables runc"
    )


def test_nothing_missing_is_fine() -> None:
    requirements.check([], install=False, say=print)

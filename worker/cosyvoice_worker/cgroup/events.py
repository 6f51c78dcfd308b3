"""What the kernel did to the container: processes killed for memory, allocations slowed down, time lost to waiting.

The counters of version 2 include those of the cgroups below (Documentation/admin-guide/cgroup-v2.rst, memory.events).
"""

from __future__ import annotations

import re
from pathlib import Path

from cosyvoice_worker.cgroup.places import MEMBERSHIP, MOUNT, container, containers, keyed, text

# A line of Documentation/accounting/psi.rst: `some avg10=0.00 avg60=0.00 avg300=0.00 total=<microseconds>`.
_PRESSURE = re.compile(r"^(some|full) .*\btotal=([0-9]+)$", re.MULTILINE)


def oom_kills(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> int | None:
    """How many processes were killed for memory; None where the kernel does not count them.

    Version 2 `memory.events`, version 1 `memory.oom_control`; both have a line `oom_kill N`.
    """
    v2, v1 = containers(mount, membership)
    counted = keyed(v2 / "memory.events").get("oom_kill")
    return keyed(v1 / "memory.oom_control").get("oom_kill") if counted is None else counted


def throttled(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> int | None:
    """How often a process was slowed down because its cgroup was over memory.high; None on version 1."""
    return keyed(container(mount, membership) / "memory.events").get("high")


def pressure_seconds(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> dict[str, float]:
    """Seconds in which `some` or all (`full`) of the container's tasks waited for memory; empty without PSI."""
    found = _PRESSURE.findall(text(container(mount, membership) / "memory.pressure"))
    return {share: int(microseconds) / 1e6 for share, microseconds in found}

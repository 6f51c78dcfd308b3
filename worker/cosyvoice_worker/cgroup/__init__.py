"""The container as the kernel accounts for it, in cgroups of either version. Standard library only.

places       where the files are
limits       what the container may use, and what it uses
usage        the same for Prometheus
events       what happened to it: kills, throttling, pressure
delegation   cgroups of our own below the container's, where the runtime lets us have them
high         what came of the wish for memory.high

https://docs.kernel.org/admin-guide/cgroup-v2.html, https://docs.kernel.org/admin-guide/cgroup-v1/memory.html and
https://docs.kernel.org/scheduler/sched-bwc.html.
"""

from cosyvoice_worker.cgroup.events import oom_kills, pressure_seconds, throttled
from cosyvoice_worker.cgroup.limits import (
    RESERVE_BYTES,
    cpu_quota,
    memory_available,
    memory_high,
    memory_limit,
    memory_used,
)

__all__ = [
    "RESERVE_BYTES",
    "cpu_quota",
    "memory_available",
    "memory_high",
    "memory_limit",
    "memory_used",
    "oom_kills",
    "pressure_seconds",
    "throttled",
]

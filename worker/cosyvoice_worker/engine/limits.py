"""Bounds on the engine process: memory that is refused instead of a kernel kill, threads that fit the CPU quota.

With `memory.oom.group` (what the kubelet sets on cgroup v2) a kernel kill takes the front with it. An allocation that
is refused takes one request, and at load one engine whose reason is known.
"""

from __future__ import annotations

import os

from cosyvoice_worker import cgroup
from cosyvoice_worker.outcome import Phase, Reason, fail

BUDGET_VARIABLE = "COSYVOICE_ENGINE_MEMORY_BYTES"

MIB = 1024 * 1024
GIB = 1024 * MIB

# Below this not even the smallest model can speak: the warm-up then says what is missing.
LEAST_BUDGET_BYTES = 64 * MIB
# Without a container limit: the attention of a 30 s prompt and 30 s of speech takes 0.6 GiB a matrix, twice.
DEFAULT_BUDGET_BYTES = 4 * GIB


def memory_budget(weights: int) -> int:
    """Bytes of private memory the engine may still take beside `weights` bytes that are mapped.

    It is what the container's limit leaves. The weights are taken off whether they are charged to this container or to
    the one that staged them, because the pod's own limit holds for both. BUDGET_VARIABLE, in bytes, goes first; raises
    WorkerError (InvalidConfig) where that is no number.
    """
    fixed = fixed_budget()
    if fixed is not None:
        return fixed
    limit = cgroup.memory_limit() or 0
    return max(LEAST_BUDGET_BYTES, limit - cgroup.memory_used() - weights - cgroup.RESERVE_BYTES)


def fixed_budget() -> int | None:
    """The budget where it does not depend on what is used: the environment's, or the default; None where it does."""
    if wanted := os.environ.get(BUDGET_VARIABLE):
        return _bytes(wanted)
    return DEFAULT_BUDGET_BYTES if cgroup.memory_limit() is None else None


def threads() -> int:
    """Compute threads: whole CPUs of the quota, or all that this process may run on; OMP_NUM_THREADS goes first.

    More threads than the quota has CPUs use it up early in each period and then all wait.
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    quota = cgroup.cpu_quota()
    available = len(os.sched_getaffinity(0))
    return available if quota is None else max(1, min(available, int(quota)))


def _bytes(text: str) -> int:
    if not text.isdecimal():
        message = f"the environment variable {BUDGET_VARIABLE} is {text!r}, not a number of bytes"
        raise fail(Reason.INVALID_CONFIG, Phase.MAP, message, expected="a number of bytes", actual=text)
    return int(text)

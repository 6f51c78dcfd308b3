"""How many processes of this container the kernel has killed for memory: it tells exit code 71 from 73.

Files: cgroup v2 `memory.events`, cgroup v1 `memory.oom_control` (Linux, Documentation/admin-guide/cgroup-v2.rst and
cgroup-v1/memory.rst); both have a line `oom_kill N`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


class OomKills:
    """Whose kills they were: the container has one counter and may have two engines. `count` reads the counter."""

    def __init__(self, count: Callable[[], int | None]) -> None:
        self._count = count
        self._attributed = 0

    def unclaimed(self) -> int:
        """Kills that no engine has been found to be the victim of."""
        return (self._count() or 0) - self._attributed

    def claim(self, unclaimed_before: int) -> bool:
        """Whether a process that was killed is the victim of one that came after `unclaimed_before`; if so, its own."""
        if self.unclaimed() <= unclaimed_before:
            return False
        self._attributed += 1
        return True


def oom_kills(root: Path = CGROUP_ROOT, own: Path = OWN_CGROUPS) -> int | None:
    """The counter, or None where the kernel shows none."""
    for path in _candidates(root, own):
        try:
            lines = path.read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition(" ")
            if key == "oom_kill" and value.isdigit():
                return int(value)
    return None


def _candidates(root: Path, own: Path) -> Iterator[Path]:
    """Own cgroup's files first, then the root's: a container often sees only its own cgroup, mounted as the root."""
    try:
        entries = [line.split(":", 2) for line in own.read_text(encoding="utf-8").splitlines()]
    except OSError:
        entries = []
    for entry in entries:
        if len(entry) != 3:
            continue
        _, controllers, path = entry
        if controllers == "":
            yield root / path.lstrip("/") / "memory.events"
        elif "memory" in controllers.split(","):
            yield root / "memory" / path.lstrip("/") / "memory.oom_control"
    yield root / "memory.events"
    yield root / "memory" / "memory.oom_control"

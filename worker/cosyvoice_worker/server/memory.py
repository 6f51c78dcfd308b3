"""The private memory of an engine, as the front sees it: the mapped weights are shared and do not count."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


def private_bytes(pid: int, proc: Path = PROC) -> int | None:
    """What process `pid` holds for itself; None when it has ended.

    `RssAnon` of Linux' /proc/PID/status (proc_pid_status(5)): files and the pages of a tmpfs are not in it.
    """
    try:
        lines = (proc / str(pid) / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), None)


@dataclass(slots=True)
class Usage:
    """Bytes of private memory: at the last look, the most there were, when the engine was ready, between requests."""

    now: int = 0
    peak: int = 0
    at_ready: int = 0
    between_requests: int = 0

    def see(self, count: int | None) -> int:
        """Look once; what is known after it."""
        if count is not None:
            self.now = count
            self.peak = max(self.peak, count)
        return self.now

    @property
    def growth(self) -> int:
        """How much more it holds between requests than when it was ready."""
        return max(0, self.between_requests - self.at_ready)

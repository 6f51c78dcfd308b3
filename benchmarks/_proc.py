"""What the kernel tells of a process: processor time, and anonymous memory, which it alone has and nobody can share."""

from __future__ import annotations

import os
import threading
from pathlib import Path

SAMPLE_SECONDS = 0.002


def anonymous_bytes(pid: int | None = None) -> int:
    """RssAnon of this process or of `pid`; 0 for one that has ended."""
    try:
        status = Path(f"/proc/{pid or 'self'}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon:")), 0)


def cpu_seconds(pid: int) -> float:
    """Processor time of all threads of `pid` so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Peak:
    """Watches another process from a thread here until the `with` block ends; `bytes` is the most it had.

    From outside, because a thread inside waits while PyTorch holds the interpreter's lock. The kernel itself keeps a
    peak of all resident memory only, in which shared pages of files count as much as private ones.
    """

    def __init__(self, pid: int) -> None:
        self.bytes = anonymous_bytes(pid)
        self._pid = pid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(SAMPLE_SECONDS):
            self.bytes = max(self.bytes, anonymous_bytes(self._pid))

"""Reaping children: the engine's exit status goes to who waits for it, orphans of a container's process 1 to nobody."""

from __future__ import annotations

import asyncio
import os
import signal


class Reaper:
    """`start()` on the main thread. `orphans`: also reap what was inherited, as process 1 of a container must."""

    def __init__(self, *, orphans: bool) -> None:
        self._orphans = orphans
        self._watched: dict[int, asyncio.Future[int]] = {}

    def start(self) -> None:
        """Collect from now on, and what has ended already."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self.collect)

    def stop(self) -> None:
        """Leave SIGCHLD alone again."""
        asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)

    def watch(self, pid: int) -> asyncio.Future[int]:
        """The future end of the child `pid`: its exit code, or minus the number of the signal that killed it."""
        future = asyncio.get_running_loop().create_future()
        self._watched[pid] = future
        self.collect()
        return future

    def collect(self) -> None:
        """Reap whatever has ended. Signals are merged, so one call may find several."""
        for pid in list(self._watched):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._watched.pop(pid).set_result(os.waitstatus_to_exitcode(status))
        while self._orphans:
            try:
                # Looked at before it is taken: a watched child that ended just now is left for the next signal.
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None or found.si_pid in self._watched:
                return
            os.waitpid(found.si_pid, os.WNOHANG)

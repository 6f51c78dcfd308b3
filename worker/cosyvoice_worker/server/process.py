"""The real engine process behind the port `EngineProcess`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket

from cosyvoice_worker.server import memory
from cosyvoice_worker.server.confinement import Hold
from cosyvoice_worker.server.reaper import Reaper
from cosyvoice_worker.server.spawn import Spawned


class ChildEngine:
    """An engine that is a child of this process; `hold` is its own cgroup, if it has one."""

    def __init__(self, spawned: Spawned, reaper: Reaper, hold: Hold | None = None) -> None:
        self.pid = spawned.pid
        self.started_at = spawned.started_at
        self.sock = socket.socket(fileno=spawned.fd)
        self._ended = reaper.watch(spawned.pid)
        self._hold = hold

    def private_bytes(self) -> int | None:
        return None if self._ended.done() else memory.private_bytes(self.pid)

    def bound(self, growth: int | None) -> None:
        if self._hold is not None and not self._ended.done():
            self._hold.bound(growth)

    def kill(self) -> None:
        # Once it is reaped the number may belong to another process.
        if not self._ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def wait(self) -> int:
        status = await asyncio.shield(self._ended)
        if self._hold is not None:
            self._hold.leaf.remove()
        return status

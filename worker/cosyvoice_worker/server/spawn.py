"""Starting the engine process, with nothing imported that is not in the interpreter already.

`posix_spawn` and not `fork`: the child must not inherit this process' threads' locks. The call is made on the main
thread, because the engine asks the kernel to be killed when the *thread* that started it ends.
"""

from __future__ import annotations

import _socket
import os
import sys
from time import monotonic


class Spawned:
    """A started engine process: its `pid`, the front's end of the channel by descriptor, and when it was started."""

    def __init__(self, pid: int, fd: int) -> None:
        self.pid = pid
        self.fd = fd
        self.started_at = monotonic()


def spawn_engine(arguments: list[str]) -> Spawned:
    """Start `python -m cosyvoice_worker.engine --fd N` with further `arguments`. Raises OSError."""
    ours, theirs = _socket.socketpair()
    try:
        os.set_inheritable(theirs.fileno(), True)
        command = [sys.executable, "-m", "cosyvoice_worker.engine", "--fd", str(theirs.fileno()), *arguments]
        pid = os.posix_spawn(sys.executable, command, os.environ)
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return Spawned(pid, ours.detach())

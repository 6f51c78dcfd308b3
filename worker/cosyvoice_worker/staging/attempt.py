"""One staging in a process of its own, which can be given up.

A read of a source that is gone (a network file system whose server is) may not come back for ever, and nothing inside
a process can end it; killing the process does. So the work is done in a child, which tells over a pipe what it does,
and the parent gives up a child that has told nothing new for too long. The child is a fork of a process without threads
that has imported no more than staging needs: it costs a millisecond.

A process in uninterruptible sleep survives even SIGKILL until the kernel lets it go. It holds the lock of the root
meanwhile, so nothing else goes wrong: the next attempt waits for the lock, and gives up in its turn.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError, fail
from cosyvoice_worker.staging.activity import Tell
from cosyvoice_worker.staging.child import Doing, Done, Failed, Message, be_the_child, decode
from cosyvoice_worker.staging.pointer import Staged
from cosyvoice_worker.staging.space import NoRoomError
from cosyvoice_worker.staging.store import Store

# How long a child that was told to end may take to remove what it has copied so far.
GRACE_SECONDS = 2.0
# How long a killed child may take to be gone.
KILL_SECONDS = 2.0
POLL_SECONDS = 0.01

log = logging.getLogger(__name__)


class Attempt:
    """`work`, running in a child process from the beginning; it is given a Tell. `root` is where it stages.

    It is given up when it has told nothing new for `stall_seconds`.
    """

    def __init__(self, work: Callable[[Tell], Staged], root: Path, stall_seconds: float) -> None:
        self._root = root
        self._stall_seconds = stall_seconds
        self._doing = Doing("beginning", None)
        self._moved_at = time.monotonic()
        self._text = b""
        self._reader, writer = os.pipe()
        parent = os.getpid()
        self._pid: int | None = os.fork()
        if self._pid == 0:
            os.close(self._reader)
            be_the_child(work, writer, parent)
        os.close(writer)

    def result(self, seconds: float) -> Staged | None:
        """What was staged; None when it is not yet after `seconds`. Raises WorkerError when it failed or stands still.

        After anything but None this attempt is over.
        """
        patience = self._moved_at + self._stall_seconds - time.monotonic()
        readable, _, _ = select.select([self._reader], [], [], max(0.0, min(seconds, patience)))
        if readable:
            data = os.read(self._reader, 65536)
            if not data:
                raise self._died()
            self._text += data
            *lines, self._text = self._text.split(b"\n")
            for line in lines:
                self._hear(message := decode(line))
                if isinstance(message, Done):
                    self._reap()
                    return message.staged
                if isinstance(message, Failed):
                    self._reap()
                    raise NoRoomError(message.outcome, room=True) if message.room else WorkerError(message.outcome)
        if time.monotonic() - self._moved_at >= self._stall_seconds:
            self._end(signal.SIGKILL)
            raise self._stands_still()
        return None

    def give_up(self) -> None:
        """End the child, if it still runs, and remove what it has copied so far."""
        if self._pid is not None:
            self._end(signal.SIGTERM)

    def _hear(self, message: Message) -> None:
        if isinstance(message, Doing) and message != self._doing:
            self._doing, self._moved_at = message, time.monotonic()

    def _end(self, number: signal.Signals) -> None:
        pid = self._pid
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if number is signal.SIGTERM and self._is_gone(GRACE_SECONDS):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if self._is_gone(KILL_SECONDS):
            self._clear()
        else:
            log.error("a stager cannot be killed: the kernel waits for the source", extra={"pid": pid})
            self._close()

    def _clear(self) -> None:
        """Remove what a killed child left, unless another stager is at work by now."""
        store = Store(self._root)
        with contextlib.suppress(FileNotFoundError), store.lock_or_not() as held:
            if held:
                store.clear_incoming()

    def _is_gone(self, seconds: float) -> bool:
        """Whether the child is, after `seconds` at most."""
        deadline = time.monotonic() + seconds
        while self._pid is not None:
            if os.waitpid(self._pid, os.WNOHANG)[0]:
                self._close()
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _reap(self) -> None:
        if self._pid is not None:
            os.waitpid(self._pid, 0)
        self._close()

    def _close(self) -> None:
        if self._pid is not None:
            self._pid = None
            os.close(self._reader)

    def _died(self) -> WorkerError:
        """The child ended without a word."""
        status = os.waitpid(self._pid or 0, 0)[1]
        self._close()
        code = os.waitstatus_to_exitcode(status)
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        words = f"the staging process ended {how} while {self._doing.words}"
        if code != -signal.SIGKILL:
            return fail(Reason.ENGINE_DIED, Phase.STAGE, words, file=self._doing.file, actual=how)
        outcome = Outcome(
            reason=Reason.OUT_OF_MEMORY,
            phase=Phase.STAGE,
            message=f"{words}, most likely for want of memory: raise the memory limit of the stage container",
            file=self._doing.file,
        )
        return NoRoomError(outcome, room=True)

    def _stands_still(self) -> WorkerError:
        return fail(
            Reason.SOURCE_UNREACHABLE,
            Phase.STAGE,
            f"no progress for {self._stall_seconds:g} s while {self._doing.words}: is the source's storage there?",
            file=self._doing.file,
            expected=f"progress within {self._stall_seconds:g} s",
            actual="none",
        )

"""The child's side of an attempt: what it does, and what it tells the parent over a pipe, as one JSON object a line."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import time
from collections.abc import Callable
from typing import NoReturn

import msgspec

from cosyvoice_worker.ending import end_on_signals
from cosyvoice_worker.outcome import Outcome, Reason, WorkerError
from cosyvoice_worker.staging.activity import Tell
from cosyvoice_worker.staging.pointer import Staged
from cosyvoice_worker.staging.space import NoRoomError

PR_SET_PDEATHSIG = 1

# The same file's progress is told at most so often.
TELL_SECONDS = 0.2

log = logging.getLogger(__name__)


class Doing(msgspec.Struct, tag=True, frozen=True):
    """A sign of life."""

    words: str
    file: str | None


class Done(msgspec.Struct, tag=True, frozen=True):
    """The child's success."""

    staged: Staged


class Failed(msgspec.Struct, tag=True, frozen=True):
    """The child's failure. `room` as in NoRoomError."""

    outcome: Outcome
    room: bool


Message = Doing | Done | Failed
decode = msgspec.json.Decoder(Message).decode


def be_the_child(work: Callable[[Tell], Staged], writer: int, parent: int) -> NoReturn:
    """In the forked child of process `parent`: do `work` and tell of it on the pipe `writer`."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the kernel was asked to tell of that
        os._exit(1)
    end_on_signals()
    code = 1
    try:
        try:
            message: Done | Failed = Done(work(_Teller(writer)))
        except WorkerError as error:
            room = error.room if isinstance(error, NoRoomError) else error.outcome.reason is Reason.OUT_OF_SPACE
            message = Failed(error.outcome, room)
        _send(writer, message)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        log.exception("staging failed")
    finally:
        logging.shutdown()
        os._exit(code)


class _Teller:
    """Tells the parent: at once of every further file, now and then how far it is with one."""

    def __init__(self, writer: int) -> None:
        self._writer = writer
        self._last = Doing("", None)
        self._told_at = 0.0

    def __call__(self, words: str, file: str | None) -> None:
        now = time.monotonic()
        doing = Doing(words, file)
        if doing == self._last or (file == self._last.file and now - self._told_at < TELL_SECONDS):
            return
        self._last, self._told_at = doing, now
        _send(self._writer, doing)


def _send(writer: int, message: Message) -> None:
    os.write(writer, msgspec.json.encode(message) + b"\n")

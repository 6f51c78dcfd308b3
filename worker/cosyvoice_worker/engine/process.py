"""The engine process from its first message to its last: say hello, load, say ready, serve."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
from pathlib import Path
from typing import NoReturn

from cosyvoice_worker import logs
from cosyvoice_worker.channel import Failed, Hello, Ready
from cosyvoice_worker.engine.environment import prepare
from cosyvoice_worker.engine.link import Inbox, Link, leave
from cosyvoice_worker.engine.phases import IMPORT, Phases
from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError, fail
from cosyvoice_worker.settings import read_settings
from cosyvoice_worker.staging import locks
from cosyvoice_worker.staging.pointer import read_pointer

PR_SET_PDEATHSIG = 1

log = logging.getLogger(__name__)


def run(fd: int, config: Path, root: Path, voices: Path, *, memory_bytes: int | None = None) -> NoReturn:
    """Be the engine behind descriptor `fd`, until the front is gone or the load has failed.

    `memory_bytes` is what a second engine may hold for itself.
    """
    # Ctrl-C in a terminal reaches this process too; when it ends is the front's to say, which drains first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    link = Link(socket.socket(fileno=fd))
    link.send(Hello(pid=os.getpid()))
    inbox = Inbox(link, leave)
    phases = Phases(link.send)
    phases.enter(IMPORT)
    try:
        settings = read_settings(config, Phase.MAP)
        logs.configure("engine", model=settings.model, version=settings.version, revision=settings.revision)
        staged = read_pointer(root, Phase.MAP, settings.revision)
        _hold(root / staged.directory)
        prepare()
        # Only now PyTorch: by its import the front knows that this process runs, and that there is something to load.
        from cosyvoice_worker.engine.load import load  # noqa: PLC0415
        from cosyvoice_worker.engine.serve import serve  # noqa: PLC0415

        engine = load(
            settings.engine,
            root / staged.directory,
            voices,
            phases,
            link.send,
            memory_bytes=memory_bytes,
            memory_high=settings.memory_high_bytes,
        )
    except WorkerError as error:
        link.send(failure(error.outcome))
        leave(error.outcome.exit_code)
    if engine.bound is not None:
        inbox.on_bound = engine.bound.change
    link.send(
        Ready(
            sample_rate=engine.sample_rate,
            device=engine.device,
            dtype=engine.dtype,
            load=phases.finish(),
            voices=engine.voices.names(),
            slowest_step=engine.slowest_step,
        )
    )
    serve(engine, inbox, link.send)


def _hold(version: Path) -> None:
    """Keep `version` from being evicted as long as this process lives. Raises WorkerError when it is gone already."""
    try:
        locks.shared(version)
    except OSError as error:
        message = f"the staged version {version} cannot be opened: {error.strerror}"
        raise fail(Reason.MISSING_FILE, Phase.MAP, message, file=str(version)) from error


def failure(outcome: Outcome) -> Failed:
    """The engine's own end (id 0), as the front puts it into the termination message."""
    return Failed(
        id=0,
        reason=outcome.reason.value,
        message=outcome.message,
        phase=outcome.phase.value,
        file=outcome.file,
        tensor=outcome.tensor,
        expected=outcome.expected,
        actual=outcome.actual,
    )


def _die_with_parent() -> None:
    """The kernel kills this process when the thread that started it ends, however that comes."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

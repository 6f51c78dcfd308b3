"""flock on a directory: the kernel drops it at the death of its holder, so a crash never leaves one behind."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_SECONDS = 0.05


def shared(directory: Path) -> int:
    """Hold `directory` against eviction for as long as this process lives; the descriptor of the lock.

    For every process that maps files of a staged version: take it before the first file is opened and check then that
    the version is still there. Works on a read-only mount.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


@contextmanager
def exclusive_or_not(path: Path) -> Iterator[bool]:
    """Try for the exclusive lock without waiting: True if the block holds it, False if somebody holds one on `path`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield _taken(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def only_stager(lock_file: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """The one stager at work in a root; waits for another one to end, and calls `waiting` again and again meanwhile."""
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while not _taken(descriptor):
            waiting()
            time.sleep(POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    """Whether the exclusive lock could be had."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

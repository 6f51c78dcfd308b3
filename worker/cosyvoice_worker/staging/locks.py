"""flock on a directory: the kernel drops it at the death of its holder, so a crash never leaves one behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def shared(directory: Path) -> int:
    """Hold `directory` against eviction for as long as this process lives; the descriptor of the lock.

    For every process that maps files of a staged version: take it before the first file is opened and check then that
    the version is still there. Works on a read-only mount.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


@contextmanager
def exclusive_or_not(directory: Path) -> Iterator[bool]:
    """Try for the exclusive lock without waiting: True if the block holds it, False if somebody maps `directory`."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextmanager
def only_stager(lock_file: Path) -> Iterator[None]:
    """The one stager at work in a root; waits for another one to end."""
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

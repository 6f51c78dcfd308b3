"""Advisory file locks: they vanish with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, *, shared: bool = False, on_wait: str | None = None) -> Iterator[None]:
    """Hold the lock of `path`, waiting for it; `on_wait` is printed if there is something to wait for."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait:
                print(on_wait, flush=True)
            fcntl.flock(file, kind)
        yield


@contextmanager
def tried(path: Path) -> Iterator[bool]:
    """Hold the lock of `path` exclusively if nobody else holds it; yields whether it is held."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True

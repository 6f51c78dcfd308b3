"""Waiting for something outside to become true, with an error that shows what was seen last."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class WaitError(Exception):
    """What was awaited did not happen in time."""


def wait_for(what: str, probe: Callable[[], T], *, timeout: float = 60, every: float = 0.2) -> T:
    """The first truthy value of `probe`. Raises WaitError that names what was awaited and the last value."""
    deadline = time.monotonic() + timeout
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            raise WaitError(f"waited {timeout:.0f} s for {what}; last seen: {value!r}")
        time.sleep(every)

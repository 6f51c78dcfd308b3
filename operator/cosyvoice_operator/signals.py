"""SIGTERM and SIGINT set an event, and nothing else."""

from __future__ import annotations

import asyncio
import signal


def listen(stop: asyncio.Event) -> None:
    """Set `stop` at SIGTERM and SIGINT, instead of whatever was done at them before."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

"""In place of the engine's `__main__` in the virtual machine: the channel is the real one, the body a hog.

There is no torch in it, which would take a minute to be imported there. What it is told by signals:

SIGUSR1   take memory beyond memory.high again and again, so that the kernel makes it wait
SIGUSR2   stop that

The engine of a version called `too-much` takes more memory than there is while it loads.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import signal
import socket
import threading
from pathlib import Path

from cosyvoice_worker import channel
from cosyvoice_worker.engine.link import Link

MIB = 2**20
HELD = 24 * MIB  # anonymous memory of the model, so to speak
PIECE = 64 * MIB  # what the hog takes and gives back: with the rest it is beyond memory.high
TOO_MUCH = "too-much"

hogging = threading.Event()


def take(count: int) -> mmap.mmap:
    """Anonymous memory with every page touched."""
    memory = mmap.mmap(-1, count)
    for page in range(0, count, mmap.PAGESIZE):
        memory[page] = 1
    return memory


def hog() -> None:
    while True:
        hogging.wait()
        take(PIECE).close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--config", type=Path, required=True)
    known, _ = parser.parse_known_args()
    link = Link(socket.socket(fileno=known.fd))
    link.send(channel.Hello(os.getpid()))
    link.send(channel.PhaseChanged("Map"))
    held = [take(HELD)]
    if json.loads(known.config.read_bytes())["version"] == TOO_MUCH:
        while True:
            held.append(take(PIECE))
    link.send(channel.Ready(24000, "cpu", "float32", {"total": 0.1}, [], slowest_step=0.01))
    signal.signal(signal.SIGUSR1, lambda *_: hogging.set())
    signal.signal(signal.SIGUSR2, lambda *_: hogging.clear())
    threading.Thread(target=hog, daemon=True).start()
    while (message := link.receive()) is not None and not isinstance(message, channel.Shutdown):
        pass  # Nobody speaks to it.


main()

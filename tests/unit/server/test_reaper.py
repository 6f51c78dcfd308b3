"""Reaping real children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from cosyvoice_worker.server.reaper import Reaper


@pytest.fixture
async def reaper() -> AsyncIterator[Reaper]:
    reaper = Reaper(orphans=False)
    reaper.start()
    yield reaper
    reaper.stop()


def spawn(script: str) -> int:
    return os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", script], os.environ)


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(66)", 66),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
async def test_the_end_of_a_child_is_told(reaper: Reaper, script: str, status: int) -> None:
    assert await reaper.watch(spawn(script)) == status


async def test_a_child_that_ended_before_it_was_watched_is_told_too(reaper: Reaper) -> None:
    pid = spawn("pass")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - it ends by itself

    assert await reaper.watch(pid) == 0


async def test_children_that_nobody_watches_are_left_to_their_owner(reaper: Reaper) -> None:
    other = spawn("pass")

    assert await reaper.watch(spawn("pass")) == 0
    assert os.waitpid(other, 0)[1] == 0  # noqa: ASYNC222 - it ends by itself


ORPHANS = """
import asyncio, os, sys
from cosyvoice_worker.server.reaper import Reaper

async def main():
    reaper = Reaper(orphans=True)
    reaper.start()
    orphan = os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", "pass"], os.environ)
    watched = os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", "raise SystemExit(3)"], os.environ)
    print(await reaper.watch(watched))
    while True:
        try:
            os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            break
        await asyncio.sleep(0.005)
    print("reaped")

asyncio.run(main())
"""


def test_process_one_reaps_orphans_and_keeps_the_status_of_the_watched() -> None:
    ran = subprocess.run([sys.executable, "-c", ORPHANS], capture_output=True, text=True, check=True, timeout=60)

    assert ran.stdout.split() == ["3", "reaped"]

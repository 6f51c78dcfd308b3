"""Run a program and turn its failure into an ImageError."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from dev.images.errors import ImageError

LAST_LINES = 15
LINE_WIDTH = 110
# A program that works for minutes must not go on when this process is killed: its lock would be free for the next one.
ENDS_WITH_US = ("setpriv", "--pdeathsig", "TERM")


def output(arguments: Sequence[str], *, env: Mapping[str, str] | None = None) -> str:
    """Run quietly; the standard output without the final newline."""
    try:
        done = subprocess.run(
            arguments, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError as error:
        raise _missing(arguments) from error
    if done.returncode:
        tail = "\n".join(done.stderr.splitlines()[-LAST_LINES:])
        raise ImageError(f"`{shlex.join(arguments)}` ended with exit code {done.returncode}:\n{tail}")
    return done.stdout.removesuffix("\n")


def stream(arguments: Sequence[str], *, env: Mapping[str, str] | None = None) -> None:
    """Run with the output going to the terminal, for what takes minutes."""
    try:
        code = subprocess.run([*ENDS_WITH_US, *arguments], env=env, stdin=subprocess.DEVNULL, check=False).returncode
    except FileNotFoundError as error:
        raise _missing(arguments) from error
    if code:
        raise ImageError(f"`{shlex.join(arguments)}` ended with exit code {code}; the reason is in the lines above")


def logged(arguments: Sequence[str], log: Path, shown: re.Pattern[str], *, env: Mapping[str, str]) -> None:
    """Run with all output going to the file `log`, and the lines that match `shown` also to the terminal."""
    tail: deque[str] = deque(maxlen=LAST_LINES)
    try:
        process = subprocess.Popen(
            [*ENDS_WITH_US, *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise _missing(arguments) from error
    with process, log.open("w", encoding="utf-8") as file:
        for line in process.stdout or ():
            file.write(line)
            tail.append(line)
            if shown.match(line):
                print(f"  {' '.join(line.split())[:LINE_WIDTH]}", flush=True)
    if process.returncode:
        last = "".join(tail)
        raise ImageError(f"{arguments[0]} ended with exit code {process.returncode}; from its output, {log}:\n{last}")


def _missing(arguments: Sequence[str]) -> ImageError:
    return ImageError(f"the program {arguments[0]} is missing; `dev/packages.sh install` installs it")

"""Run a program and turn its failure into an ImageError."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence

from dev.images.errors import ImageError

LAST_LINES = 15


def output(arguments: Sequence[str], *, env: Mapping[str, str] | None = None) -> str:
    """Run quietly; the standard output without the final newline."""
    try:
        done = subprocess.run(
            arguments, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError as error:
        raise ImageError(f"the program {arguments[0]} is missing; `dev/packages.sh install` installs it") from error
    if done.returncode:
        tail = "\n".join(done.stderr.splitlines()[-LAST_LINES:])
        raise ImageError(f"`{shlex.join(arguments)}` ended with exit code {done.returncode}:\n{tail}")
    return done.stdout.removesuffix("\n")


def stream(arguments: Sequence[str], *, env: Mapping[str, str] | None = None) -> None:
    """Run with the output going to the terminal, for what takes minutes."""
    try:
        code = subprocess.run(arguments, env=env, stdin=subprocess.DEVNULL, check=False).returncode
    except FileNotFoundError as error:
        raise ImageError(f"the program {arguments[0]} is missing; `dev/packages.sh install` installs it") from error
    if code:
        raise ImageError(f"`{shlex.join(arguments)}` ended with exit code {code}; the reason is in the lines above")

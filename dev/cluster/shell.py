"""Running other programs and saying what they said when they fail."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from dev.cluster.errors import ClusterError


def run(
    argv: Sequence[str | Path],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 120,
) -> str:
    """Run to the end and return its standard output; ClusterError if it fails or takes over `timeout` seconds."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words, input=stdin, env=env, cwd=cwd, timeout=timeout, text=True, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise ClusterError(f"{words[0]}: no such program ({error})") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"`{shlex.join(words)}` did not end within {timeout:.0f} s") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise ClusterError(f"`{shlex.join(words)}` ended with {done.returncode}: {said}")
    return done.stdout

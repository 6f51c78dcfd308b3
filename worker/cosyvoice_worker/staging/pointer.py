"""`staged.json`: which staged version this pod runs. `stage` writes it, the worker container reads it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from cosyvoice_worker.names import STAGED_POINTER
from cosyvoice_worker.outcome import Phase, Reason, fail

POINTER_SCHEMA = 1


class Staged(msgspec.Struct, frozen=True):
    """A staged version. `seconds` is what staging took this time: milliseconds if it was there already."""

    digest: str
    directory: str
    bytes: int
    seconds: float
    files: int
    schema: int = POINTER_SCHEMA


def write_pointer(root: Path, staged: Staged) -> None:
    """Point to `staged`, by rename."""
    aside = root / (STAGED_POINTER + ".tmp")
    aside.write_bytes(msgspec.json.encode(staged))
    os.replace(aside, root / STAGED_POINTER)  # noqa: PTH105 - its name says that the target may exist


def read_pointer(root: Path, phase: Phase) -> Staged:
    """What `root` points to; raises WorkerError(MissingFile) when nothing is staged there."""
    path = root / STAGED_POINTER
    try:
        return msgspec.json.decode(path.read_bytes(), type=Staged)
    except (OSError, msgspec.MsgspecError) as error:
        raise fail(
            Reason.MISSING_FILE,
            phase,
            f"no staged weights: {path} cannot be read ({error}); `cosyvoice-worker stage` writes it",
            file=str(path),
        ) from error

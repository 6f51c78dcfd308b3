"""Which staged version belongs to which revision. `stage` writes these pointers, the worker container reads them.

staged.json                     what a container falls back to: what the pod staged at its start, later its current one
revisions/<revision>.json       what was staged for a revision
revisions/<revision>.model.json the model.json it was staged with; written first, so it is there when the pointer is
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from cosyvoice_worker import documents
from cosyvoice_worker.names import REVISIONS, STAGED_POINTER
from cosyvoice_worker.outcome import Phase, Reason, fail

POINTER_SCHEMA = 1


class Staged(msgspec.Struct, frozen=True):
    """A staged version. `seconds` is what staging took this time: milliseconds if it was there already."""

    revision: str
    digest: str
    directory: str
    bytes: int
    seconds: float
    files: int
    schema: int = POINTER_SCHEMA


def write_pointer(root: Path, staged: Staged, document: bytes) -> None:
    """Point `staged.revision` to `staged`, whose model.json is `document`."""
    path = Path(documents.pointer(str(root), staged.revision))
    path.parent.mkdir(exist_ok=True)
    replace_file(Path(documents.staged(str(root), staged.revision)), document)
    replace_file(path, msgspec.json.encode(staged))


def write_start_pointer(root: Path, staged: Staged) -> None:
    """Let `staged` be what a container starts with whose own version is not staged."""
    replace_file(root / STAGED_POINTER, msgspec.json.encode(staged))


def read_pointer(root: Path, phase: Phase, revision: str) -> Staged:
    """What is staged for `revision` under `root`; raises WorkerError(MissingFile) when nothing is."""
    path = Path(documents.pointer(str(root), revision))
    try:
        return msgspec.json.decode(path.read_bytes(), type=Staged)
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise fail(
            Reason.MISSING_FILE,
            phase,
            f"no staged weights: {path} cannot be read ({error}); `cosyvoice-worker stage` writes it",
            file=str(path),
        ) from error


def find_pointer(root: Path, revision: str) -> Staged | None:
    """What is staged for `revision`; None when nothing is."""
    return _decode(Path(documents.pointer(str(root), revision)))


def find_start_pointer(root: Path) -> Staged | None:
    """What a container starts with whose own version is not staged; None when there is nothing."""
    return _decode(root / STAGED_POINTER)


def remove_pointers(root: Path, directory: str) -> None:
    """Remove every pointer to the version in `directory`, each before the document that belongs to it."""
    for path in (root / STAGED_POINTER, *sorted((root / REVISIONS).glob("*.json"))):
        staged = _decode(path)
        if staged is not None and staged.directory == directory:
            path.unlink()
            Path(documents.staged(str(root), staged.revision)).unlink(missing_ok=True)


def replace_file(path: Path, content: bytes) -> None:
    """Write `path` by rename: a reader sees the old content or the new one, whole."""
    aside = path.with_name(path.name + ".tmp")
    aside.write_bytes(content)
    os.replace(aside, path)  # noqa: PTH105 - its name says that the target may exist


def _decode(path: Path) -> Staged | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Staged)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None

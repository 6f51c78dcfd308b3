"""A version of the model as this worker can load it: what the stager has left of a revision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker import documents
from cosyvoice_worker.outcome import Phase
from cosyvoice_worker.server.local import LOCAL
from cosyvoice_worker.server.state import Identity
from cosyvoice_worker.settings import Recycle, Settings, read_settings
from cosyvoice_worker.staging.pointer import Staged, read_pointer


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """`document` is its model.json, `directory` holds its weights and voices. Loading may take `load_seconds`.

    `memory_high` is in bytes.
    """

    identity: Identity
    document: Path
    directory: Path
    load_seconds: float
    recycle: Recycle
    preload: bool = True
    memory_high: int | None = None


def read_version(document: Path, root: Path) -> Version:
    """The version of the model.json `document`, staged under `root`. Raises WorkerError when either cannot be read."""
    settings = read_settings(document, Phase.MAP)
    staged = read_pointer(root, Phase.MAP, settings.revision)
    return Version(
        identity=_identity(settings, staged),
        document=document,
        directory=root / staged.directory,
        load_seconds=settings.engine.load_timeout_seconds,
        recycle=settings.engine.recycle,
        preload=settings.engine.preload,
        memory_high=settings.memory_high_bytes,
    )


def staged_version(revision: str, root: Path) -> Version:
    """The version that was staged for `revision` under `root`. Raises WorkerError when there is none."""
    return read_version(Path(documents.staged(str(root), revision)), root)


def _identity(settings: Settings, staged: Staged) -> Identity:
    is_local = staged.digest == LOCAL
    return Identity(
        model=settings.model,
        version=settings.version,
        revision=settings.revision,
        digest=None if is_local else staged.digest,
        staged_bytes=None if is_local else staged.bytes,
        staged_seconds=None if is_local else staged.seconds,
    )

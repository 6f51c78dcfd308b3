"""Staging from end to end: reuse what is there, or bring it in, and point to it."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from cosyvoice_worker.staging import progress
from cosyvoice_worker.staging.activity import Tell, nobody
from cosyvoice_worker.staging.bring import bring
from cosyvoice_worker.staging.copy import sha256_of
from cosyvoice_worker.staging.failures import target_failure
from cosyvoice_worker.staging.manifest import Manifest
from cosyvoice_worker.staging.pointer import Staged, write_pointer, write_start_pointer
from cosyvoice_worker.staging.selection import select
from cosyvoice_worker.staging.store import Store, damaged_in_use
from cosyvoice_worker.staging.task import Task

log = logging.getLogger(__name__)


def stage(task: Task, root: Path, tell: Tell = nobody) -> Staged:
    """Have the version of `task` complete under `root` and its pointers on it; `tell` hears signs of life.

    Everything that can be seen to be wrong with the source is told before a byte is written; whatever fails later
    leaves no partial copy. A stager that is killed at any point leaves nothing that the next one does not put right.
    Raises WorkerError, which is a NoRoomError when the version does not fit.
    """
    started = time.monotonic()
    store = Store(root)
    try:
        with store.lock(lambda: _wait_for_another(root, tell)):
            store.clear_incoming()
            manifest = _reuse(store, task, tell) or bring(store, task, tell)
            staged = Staged(
                revision=task.settings.revision,
                digest=manifest.digest,
                directory=manifest.hex_digest,
                bytes=manifest.bytes,
                seconds=round(time.monotonic() - started, 4),
                files=len(manifest.entries),
            )
            write_pointer(root, staged, task.document)
            if task.at_start:
                write_start_pointer(root, staged)
    except OSError as error:  # those of the source are WorkerErrors by now
        raise target_failure(error, str(error.filename or root)) from error
    return staged


def _wait_for_another(root: Path, tell: Tell) -> None:
    """Another stager's progress is one of ours: its text changes what is told."""
    tell(f"waiting for another stager at work in {root} {progress.read_text(root)}".rstrip(), None)


def _reuse(store: Store, task: Task, tell: Tell) -> Manifest | None:
    """The version that is staged already, if it is the one wanted.

    With a digest the source is not even looked at. Without one the version must have come from the very files that
    the source holds now.
    """
    digest = task.settings.source.digest
    names = _that_came_from_the_source(store, task, tell) if digest is None else [digest.removeprefix("sha256:")]
    for name in names:
        manifest = store.manifest_of(name)
        if manifest is None:
            continue
        damaged = _damaged(store.version(name), manifest, tell) if task.settings.staging.verify == "Always" else None
        if damaged is None:
            log.info("already staged", extra={"digest": manifest.digest})
            return manifest
        _discard_damaged(store, name, damaged)
    return None


def _that_came_from_the_source(store: Store, task: Task, tell: Tell) -> list[str]:
    versions = store.versions()
    if not versions:
        return []
    tell(f"looking at {task.settings.source.path}", None)
    files = select(Path(task.settings.source.path), task.boundary)
    return [version.name for version in versions if store.came_from(version.name, files)]


def _damaged(version: Path, manifest: Manifest, tell: Tell) -> str | None:
    """The first file that is no longer what the manifest says."""
    done = 0

    def verified(count: int) -> None:
        nonlocal done
        done += count
        tell(f"verifying what is staged ({done} of {manifest.bytes} bytes so far)", None)

    return next((e.path for e in manifest.entries if sha256_of(version / e.path, verified) != (e.sha256, e.size)), None)


def _discard_damaged(store: Store, name: str, file: str) -> None:
    """So that it is staged again; raises WorkerError while a process maps it."""
    if not store.discard(store.version(name)):
        raise damaged_in_use(store.version(name), file)
    log.error("a staged file was damaged, staging again", extra={"file": file, "directory": name})

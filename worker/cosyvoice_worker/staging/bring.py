"""Bringing a new version in: inspect, make room, copy, verify and publish."""

from __future__ import annotations

import logging
import os
import stat
import time
from pathlib import Path

from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail
from cosyvoice_worker.staging import space
from cosyvoice_worker.staging.activity import Tell
from cosyvoice_worker.staging.copy import Copier, SourceReadError, TargetWriteError
from cosyvoice_worker.staging.failures import source_failure, target_failure
from cosyvoice_worker.staging.inspection import inspect
from cosyvoice_worker.staging.manifest import Entry, Manifest
from cosyvoice_worker.staging.progress import Progress
from cosyvoice_worker.staging.selection import SourceFile, select
from cosyvoice_worker.staging.store import Store, bytes_in
from cosyvoice_worker.staging.task import Task

# How often a version in use is looked at again while there is no room without it.
POLL_SECONDS = 0.2

log = logging.getLogger(__name__)


def bring(store: Store, task: Task, tell: Tell) -> Manifest:
    """Copy the source of `task` in as a new version. Raises WorkerError, and OSError of the tmpfs."""
    source = task.settings.source
    tell(f"looking at {source.path}", None)
    files = select(Path(source.path), task.boundary)
    for file in files:
        tell(f"looking at {file.path}", file.path)
        inspect(file)
    _make_room(store, files, task, tell)
    try:
        manifest = _copy_all(store, files, task, tell)
        if source.digest is not None and manifest.digest != source.digest:
            raise fail(
                Reason.DIGEST_MISMATCH,
                Phase.STAGE,
                f"the files at {source.uri} are not those of spec.source.digest: restore them, or set the digest to "
                f"{manifest.digest} if they are meant",
                expected=source.digest,
                actual=manifest.digest,
            )
        store.commit(manifest, files)
    except BaseException:  # a signal too
        store.clear_incoming()
        raise
    return manifest


def _make_room(store: Store, files: list[SourceFile], task: Task, tell: Tell) -> None:
    """Remove the versions that nobody needs; raises NoRoomError when the rest is still too little.

    A version that is mapped and not to be kept is about to be let go, so there is some patience with it.
    """
    needed = space.needed_for([file.size for file in files])
    deadline = time.monotonic() + task.patience_seconds
    while True:
        in_use = store.evict(task.keep)
        held = sum(bytes_in(version) for version in store.versions())
        error = space.shortage(needed, space.measure(store.root, held, task.settings.staging.size_limit_bytes))
        if error is None:
            return
        if not (in_use and error.room) or time.monotonic() >= deadline:
            raise error
        tell(
            f"waiting for the process that maps {in_use[0]} until {deadline - time.monotonic():.0f} s have passed", None
        )
        time.sleep(POLL_SECONDS)


def _copy_all(store: Store, files: list[SourceFile], task: Task, tell: Tell) -> Manifest:
    total = sum(file.size for file in files)
    progress = Progress(store.root, task.settings.revision, total, tell)
    copier = Copier()
    entries = []
    try:
        store.incoming.mkdir()
        for file in files:
            try:
                entries.append(_copy(copier, file, task.boundary, store.incoming, progress))
            except TargetWriteError as error:
                so_far = f"after {progress.done} of {total} bytes"
                raise target_failure(error.error, file.path, so_far) from error
    finally:
        progress.end()
    return Manifest.of(entries)


def _copy(copier: Copier, file: SourceFile, boundary: Path, directory: Path, progress: Progress) -> Entry:
    target_path = directory / file.path
    target_path.parent.mkdir(exist_ok=True)
    progress.add(file.path, 0)
    source = _open(file, boundary)
    # Read-only from the start: a mapped file that is written or cut kills whoever maps it (SIGBUS).
    target = os.open(target_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    try:
        os.ftruncate(target, file.size)  # its whole size first: a tmpfs with huge pages then uses them
        sha256, size = copier.copy(source, target, lambda count: progress.add(file.path, count), most=file.size + 1)
        os.fsync(target)
        after = os.fstat(source)
    except SourceReadError as error:
        raise source_failure(error.error, file.path) from error
    finally:
        os.close(source)
        os.close(target)
    if size != file.size or after.st_mtime_ns != file.modified_ns:
        raise _changed(file, size)
    return Entry(path=file.path, size=size, sha256=sha256)


def _open(file: SourceFile, boundary: Path) -> int:
    """The file's descriptor, if it is still where and what it was: links may have changed since they were looked at."""
    try:
        source = os.open(file.real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise source_failure(error, file.path) from error
    opened = Path(f"/proc/self/fd/{source}").readlink()
    if not stat.S_ISREG(os.fstat(source).st_mode) or not opened.is_relative_to(boundary.resolve()):
        os.close(source)
        raise _changed(file, 0)
    return source


def _changed(file: SourceFile, size: int) -> WorkerError:
    """Retryable: an upload into the claim may not have ended yet."""
    return fail(
        Reason.SOURCE_UNREACHABLE,
        Phase.STAGE,
        f"{file.path} changed while it was copied: let the upload to the source end first",
        file=file.path,
        expected=f"{file.size} bytes, unchanged",
        actual=f"{size} bytes",
    )

"""Staging from end to end: reuse what is there, or inspect, make room, copy, verify and publish."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail
from cosyvoice_worker.settings import Settings, Source, Staging
from cosyvoice_worker.staging import space
from cosyvoice_worker.staging.copy import Copier, SourceReadError, TargetWriteError, sha256_of
from cosyvoice_worker.staging.failures import source_failure, target_failure
from cosyvoice_worker.staging.inspection import inspect
from cosyvoice_worker.staging.manifest import Entry, Manifest
from cosyvoice_worker.staging.pointer import Staged, write_pointer, write_start_pointer
from cosyvoice_worker.staging.progress import Progress
from cosyvoice_worker.staging.selection import SourceFile, select
from cosyvoice_worker.staging.store import Store, bytes_in, damaged_in_use

log = logging.getLogger(__name__)


def stage(settings: Settings, document: bytes, boundary: Path, root: Path) -> Staged:
    """Have the version of `settings`, which are those of `document`, complete under `root` and the pointers on it.

    Symbolic links of the source may lead anywhere inside `boundary`. Everything that can be seen to be wrong with the
    source is told before a byte is written; whatever fails later leaves no partial copy. Raises WorkerError.
    """
    started = time.monotonic()
    source, staging = settings.source, settings.staging
    store = Store(root)
    try:
        with store.lock():
            store.clear_incoming()
            manifest = _reuse(store, source, staging, boundary) or _bring(store, source, staging, boundary)
            staged = Staged(
                revision=settings.revision,
                digest=manifest.digest,
                directory=manifest.hex_digest,
                bytes=manifest.bytes,
                seconds=round(time.monotonic() - started, 4),
                files=len(manifest.entries),
            )
            write_pointer(root, staged, document)
            write_start_pointer(root, staged)
    except OSError as error:  # those of the source are WorkerErrors by now
        raise target_failure(error, str(error.filename or root)) from error
    return staged


def _reuse(store: Store, source: Source, staging: Staging, boundary: Path) -> Manifest | None:
    """The version that is staged already, if it is the one wanted.

    With a digest the source is not even looked at. Without one the version must have come from the very files that
    the source holds now.
    """
    if source.digest is not None:
        name: str | None = source.digest.removeprefix("sha256:")
    else:
        name = store.pointed_to()
    manifest = None if name is None else store.manifest_of(name)
    if name is None or manifest is None:
        return None
    if source.digest is None and not store.came_from(name, select(Path(source.path), boundary)):
        return None
    if staging.verify == "Always":
        damaged = _damaged(store.version(name), manifest)
        if damaged is not None:
            _discard_damaged(store, name, damaged)
            return None
    log.info("already staged", extra={"digest": manifest.digest})
    return manifest


def _damaged(version: Path, manifest: Manifest) -> str | None:
    """The first file that is no longer what the manifest says."""
    return next((e.path for e in manifest.entries if sha256_of(version / e.path) != (e.sha256, e.size)), None)


def _discard_damaged(store: Store, name: str, file: str) -> None:
    """So that it is staged again; raises WorkerError while a process maps it."""
    if not store.discard(store.version(name)):
        raise damaged_in_use(store.version(name), file)
    log.error("a staged file was damaged, staging again", extra={"file": file, "directory": name})


def _bring(store: Store, source: Source, staging: Staging, boundary: Path) -> Manifest:
    """Copy the source in as a new version."""
    files = select(Path(source.path), boundary)
    for file in files:
        inspect(file)
    _make_room(store, files, staging)
    try:
        manifest = _copy_all(store, files)
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


def _make_room(store: Store, files: list[SourceFile], staging: Staging) -> None:
    """Remove the versions that nobody maps; raises WorkerError when the rest is still too little."""
    kept = []
    for version in store.versions():
        if store.discard(version):
            log.info("removed an unused version", extra={"directory": version.name})
        else:
            kept.append(version)
    needed = space.needed_for([file.size for file in files])
    held = sum(bytes_in(version) for version in kept)
    error = space.shortage(needed, space.measure(store.root, held, staging.size_limit_bytes))
    if error is not None:
        raise error


def _copy_all(store: Store, files: list[SourceFile]) -> Manifest:
    total = sum(file.size for file in files)
    progress = Progress(store.root, total)
    copier = Copier()
    entries = []
    try:
        store.incoming.mkdir()
        for file in files:
            try:
                entries.append(_copy(copier, file, store.incoming, progress))
            except TargetWriteError as error:
                so_far = f"after {progress.done} of {total} bytes"
                raise target_failure(error.error, file.path, so_far) from error
    finally:
        progress.end()
    return Manifest.of(entries)


def _copy(copier: Copier, file: SourceFile, directory: Path, progress: Progress) -> Entry:
    target_path = directory / file.path
    target_path.parent.mkdir(exist_ok=True)
    try:
        source = os.open(file.real, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise source_failure(error, file.path) from error
    # Read-only from the start: a mapped file that is written or cut kills whoever maps it (SIGBUS).
    target = os.open(target_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    try:
        os.ftruncate(target, file.size)  # its whole size first: a tmpfs with huge pages then uses them
        sha256, size = copier.copy(source, target, lambda count: progress.add(file.path, count))
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

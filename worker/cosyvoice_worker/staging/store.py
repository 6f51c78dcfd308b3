"""The tmpfs: which versions it holds, and the steps that change it. `staging/__init__.py` draws its layout."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator, Set
from pathlib import Path

from cosyvoice_worker.names import STAGING_PROGRESS
from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail
from cosyvoice_worker.staging import locks
from cosyvoice_worker.staging.manifest import MANIFEST_NAME, Manifest
from cosyvoice_worker.staging.pointer import remove_pointers
from cosyvoice_worker.staging.selection import SourceFile

INCOMING = "incoming.partial"
LOCK = ".lock"
SOURCE_STAMPS = ".source.json"

_HEX_DIGEST = re.compile(r"[0-9a-f]{64}")

log = logging.getLogger(__name__)


class Store:
    """The staged versions under `root`. Everything but `manifest_of` is for the holder of `lock()`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.incoming = root / INCOMING

    @contextlib.contextmanager
    def lock(self, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Be the one stager at work here; `waiting` is called again and again while another one is."""
        self.root.mkdir(parents=True, exist_ok=True)
        with locks.only_stager(self.root / LOCK, waiting):
            yield

    def lock_or_not(self) -> contextlib.AbstractContextManager[bool]:
        """Be the one stager at work here, without waiting for another one: True if the block is it."""
        return locks.exclusive_or_not(self.root / LOCK)

    def version(self, hex_digest: str) -> Path:
        return self.root / hex_digest

    def versions(self) -> list[Path]:
        """The directories of all versions, complete or not."""
        return sorted(path for path in self.root.iterdir() if _HEX_DIGEST.fullmatch(path.name))

    def manifest_of(self, hex_digest: str) -> Manifest | None:
        """The manifest of a version that is complete and whose files have the right sizes; None for any other."""
        version = self.version(hex_digest)
        try:
            raw = (version / MANIFEST_NAME).read_bytes()
            if hashlib.sha256(raw).hexdigest() != hex_digest:
                return None
            manifest = Manifest.parse(raw.decode())
            sizes_match = all((version / entry.path).stat().st_size == entry.size for entry in manifest.entries)
        except (OSError, ValueError):
            return None
        return manifest if sizes_match else None

    def came_from(self, hex_digest: str, files: list[SourceFile]) -> bool:
        """Whether a version was copied from exactly `files`, by where they lie, their sizes and modification times."""
        try:
            stamps = json.loads((self.version(hex_digest) / SOURCE_STAMPS).read_text())
        except (OSError, ValueError):
            return False
        return bool(stamps == _stamps(files))

    def clear_incoming(self) -> None:
        """Remove what a stager left behind that was killed."""
        (self.root / STAGING_PROGRESS).unlink(missing_ok=True)
        if self.incoming.exists():
            shutil.rmtree(self.incoming)

    def commit(self, manifest: Manifest, files: list[SourceFile]) -> Path:
        """Turn `incoming.partial` into the version `manifest` describes; the marker is written last.

        A version that was kept because it is in use turns out to be the same one when only the source's times changed.
        Raises WorkerError (CorruptFile) when that one is damaged.
        """
        if self.manifest_of(manifest.hex_digest) is not None:
            self.clear_incoming()
            return self.version(manifest.hex_digest)
        version = self.version(manifest.hex_digest)
        if version.exists():  # what nobody maps was removed to make room
            raise damaged_in_use(version)
        (self.incoming / SOURCE_STAMPS).write_text(json.dumps(_stamps(files)))
        _sync(self.incoming)
        self.incoming.rename(version)
        marker = version / (MANIFEST_NAME + ".tmp")
        marker.write_text(manifest.text)
        marker.rename(version / MANIFEST_NAME)
        _sync(version)
        _sync(self.root)
        return version

    def evict(self, keep: Set[str]) -> list[Path]:
        """Remove all versions but those that `keep` names; those that a process maps are left, and returned."""
        in_use = []
        for version in self.versions():
            if version.name in keep:
                continue
            if self.discard(version):
                log.info("removed an unused version", extra={"directory": version.name})
            else:
                in_use.append(version)
        return in_use

    def discard(self, version: Path) -> bool:
        """Remove a version unless a process maps it; whether it is gone. Pointers to it go first."""
        with locks.exclusive_or_not(version) as held:
            if held:
                remove_pointers(self.root, version.name)
                shutil.rmtree(version)
            return held


def damaged_in_use(version: Path, file: str | None = None) -> WorkerError:
    """A version that has to be staged again, and cannot be while a process maps it."""
    what = "version" if file is None else file
    message = f"the staged {what} is damaged and in use: end the processes that map {version}"
    return fail(Reason.CORRUPT_FILE, Phase.STAGE, message, file=file)


def bytes_in(version: Path) -> int:
    """Bytes of tmpfs that the files of `version` take."""
    blocks = [path.lstat().st_blocks for path in version.rglob("*")]
    return sum(blocks) * 512  # POSIX: st_blocks counts in 512 bytes


def _stamps(files: list[SourceFile]) -> dict[str, list[str | int]]:
    return {file.path: [str(file.real), file.size, file.modified_ns] for file in files}


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

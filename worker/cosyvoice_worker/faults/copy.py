"""The copy of a good model directory that a fault then damages.

Nothing is ever written into a file that the good directory might share: what changes is a new file. What does not
change costs no space where the file system can share it (a clone of its blocks, else a hard link).
"""

from __future__ import annotations

import fcntl
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker.staging.selection import SourceFile, select

FICLONE = 0x40049409  # linux/fs.h: share the blocks of another file until one of the two is written to


@dataclass(frozen=True, slots=True)
class Copy:
    """The files of a good directory that a pod stages, copied to `directory`."""

    good: tuple[SourceFile, ...]
    directory: Path

    @classmethod
    def make(cls, good: Path, directory: Path) -> Copy:
        """Copy what a pod would stage of `good`. Raises WorkerError when that is no complete model, and OSError."""
        files = tuple(select(good, boundary=Path("/")))
        for file in files:
            target = directory / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            _share(file.real, target)
        return cls(files, directory)

    def original(self, path: str) -> SourceFile:
        """The good file, to be read only."""
        return next(file for file in self.good if file.path == path)

    def new(self, path: str) -> Path:
        """Where to write a file of its own in the place of `path`, which is no longer there."""
        target = self.directory / path
        target.unlink(missing_ok=True)
        return target

    def own(self, path: str) -> Path:
        """`path` with the good file's bytes, to be written to."""
        target = self.new(path)
        shutil.copyfile(self.original(path).real, target)
        return target


def _share(source: Path, target: Path) -> None:
    if not _clone(source, target):
        try:
            os.link(source, target)
        except OSError:  # another file system, or one without hard links, or a file of someone else
            shutil.copyfile(source, target)


def _clone(source: Path, target: Path) -> bool:
    """Whether the file system could make `target` a clone of `source`."""
    with source.open("rb") as reader, target.open("xb") as writer:
        try:
            fcntl.ioctl(writer, FICLONE, reader.fileno())
        except OSError:
            target.unlink()
            return False
    return True

"""The manifest: what a staged version consists of. The sha256 of its text is the version's digest.

The text is one `schema: 1` line and one line `<sha256>  <size>  <path>` a file, sorted by path; a later schema that
stages more files is another text, so a revision keeps the schema it was made with.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from cosyvoice_worker.names import MANIFEST_SCHEMA

MANIFEST_NAME = ".manifest"

_HEAD = f"schema: {MANIFEST_SCHEMA}"
_LINE = re.compile(r"(?P<sha256>[0-9a-f]{64})  (?P<size>\d+)  (?P<path>\S.*)")


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: path inside the model directory, size in bytes, sha256 as 64 hexadecimal digits."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a version, sorted by path."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, entries: list[Entry]) -> Manifest:
        return cls(tuple(sorted(entries, key=lambda entry: entry.path)))

    @classmethod
    def parse(cls, text: str) -> Manifest:
        """The manifest written by `text`; raises ValueError for anything that `text` could not have written."""
        lines = text.splitlines()
        matches = [_LINE.fullmatch(line) for line in lines[1:]]
        entries = [Entry(match["path"], int(match["size"]), match["sha256"]) for match in matches if match]
        manifest = cls(tuple(entries))
        if manifest.text != text or not all(_stays_inside(entry.path) for entry in entries):
            raise ValueError(f"not a manifest of schema {MANIFEST_SCHEMA}: it begins with {lines[:1]}")
        return manifest

    @property
    def text(self) -> str:
        lines = [f"{entry.sha256}  {entry.size}  {entry.path}" for entry in self.entries]
        return "\n".join([_HEAD, *lines]) + "\n"

    @property
    def hex_digest(self) -> str:
        """64 hexadecimal digits: the name of the staged directory."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def digest(self) -> str:
        return f"sha256:{self.hex_digest}"

    @property
    def bytes(self) -> int:
        return sum(entry.size for entry in self.entries)


def _stays_inside(path: str) -> bool:
    """Whether `path` names a file below the model directory, whatever the links."""
    return not path.startswith("/") and ".." not in path.split("/")

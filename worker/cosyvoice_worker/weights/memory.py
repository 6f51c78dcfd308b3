"""Keeps mapped weights what they are: read-only, resident, and the only large thing in the process.

PyTorch maps a checkpoint privately and writable. A stray in-place operation on a weight would then silently copy its
pages, and RLIMIT_DATA counts every such mapping in full. Protected mappings cannot be written, and count for nothing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosyvoice_worker.outcome import Phase, Reason, fail

_PROT_READ = 1
_MADV_POPULATE_READ = 22  # Linux 5.14

_libc = ctypes.CDLL(None, use_errno=True)
for _function in (_libc.mprotect, _libc.madvise):
    _function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    _function.restype = ctypes.c_int


@dataclass(frozen=True, slots=True)
class Mapping:
    """A stretch of this process's address space that shows a file."""

    start: int
    size: int
    writable: bool
    file: str


def mappings_of(files: Iterable[Path]) -> list[Mapping]:
    """Where this process has mapped any of `files`."""
    wanted = {str(file.resolve()) for file in files}
    found = []
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)  # range, permissions, offset, device, inode, path
        if len(fields) == 6 and fields[5] in wanted:
            start, end = (int(address, 16) for address in fields[0].split("-"))
            found.append(Mapping(start, end - start, "w" in fields[1], fields[5]))
    return found


def protect(files: Iterable[Path]) -> None:
    """Make every mapping of `files` read-only: a write into a weight then ends the process instead of copying pages."""
    for mapping in mappings_of(files):
        if mapping.writable and _libc.mprotect(mapping.start, mapping.size, _PROT_READ):
            number = ctypes.get_errno()
            raise OSError(number, f"cannot protect the mapping: {os.strerror(number)}", mapping.file)


def populate(files: Iterable[Path]) -> None:
    """Bring every page of the mappings of `files` in now, so that no request pays for it."""
    for mapping in mappings_of(files):
        if not _libc.madvise(mapping.start, mapping.size, _MADV_POPULATE_READ):
            continue
        if ctypes.get_errno() == errno.ENOMEM:
            message = f"no memory for the pages of {mapping.file} ({mapping.size} bytes)"
            raise fail(Reason.OUT_OF_MEMORY, Phase.MAP, message, file=Path(mapping.file).name)
        _touch(mapping)  # the kernel does not know the advice


def data_bytes() -> int:
    """What RLIMIT_DATA counts at the moment: the private writable memory of this process, in bytes."""
    return _status("VmData")


def private_bytes() -> int:
    """What of it is in use: the pages that this process holds for itself, in bytes."""
    return _status("RssAnon")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(errno.ENOENT, f"the kernel shows no {name}", "/proc/self/status")


def limit_growth(budget: int) -> None:
    """From now on refuse this process more than `budget` bytes of new memory; an allocation beyond fails."""
    limit_data(data_bytes() + budget)


def limit_data(limit: int) -> None:
    """Refuse this process what would bring `data_bytes` over `limit`."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _touch(mapping: Mapping) -> None:
    """Read one byte of each page."""
    pages = memoryview((ctypes.c_uint8 * mapping.size).from_address(mapping.start))
    np.frombuffer(pages, np.uint8)[:: resource.getpagesize()].max(initial=0)

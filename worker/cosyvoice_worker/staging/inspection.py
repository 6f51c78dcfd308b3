"""What can be seen to be wrong with a file before it is copied: a git-lfs pointer, nothing in it, a cut-off end.

Costs a few kilobytes of reading a file. What only the digest can tell (a flipped bit) is left to the copy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail
from cosyvoice_worker.regular_files import open_regular
from cosyvoice_worker.staging.archive import flaw_of
from cosyvoice_worker.staging.failures import source_failure
from cosyvoice_worker.staging.selection import SourceFile

LFS_MAGIC = b"version https://git-lfs.github.com/spec/"
LFS_MAX_BYTES = 1024  # https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: a pointer is smaller than that

ZIP_MAGIC = b"PK\x03\x04"
PICKLE_MAGIC = b"\x80"  # torch.save before 1.6, or with its old format asked for

SAFETENSORS_LENGTH_BYTES = 8
SAFETENSORS_MAX_HEADER_BYTES = 1_000_000  # the only such files that are staged are voice packs


def inspect(file: SourceFile) -> None:
    """Raises WorkerError (LFSPointer, TruncatedFile, CorruptFile, or as `source_failure`) when `file` is damaged."""
    if file.size == 0:
        raise _truncated(file.path, "is empty", expected="more than 0 bytes", actual="0 bytes")
    try:
        with open_regular(file.real) as stream:
            head = stream.read(LFS_MAX_BYTES)
        if file.size <= LFS_MAX_BYTES and head.startswith(LFS_MAGIC):
            raise _lfs_pointer(file, head)
        check = CHECKS.get(Path(file.path).suffix)
        if check is not None:
            check(file, head)
    except OSError as error:
        raise source_failure(error, file.path) from error


def _check_checkpoint(file: SourceFile, head: bytes) -> None:
    """A torch checkpoint: its zip directory stands at the end, so a cut file has lost it."""
    if head.startswith(PICKLE_MAGIC):
        return
    if not head.startswith(ZIP_MAGIC):
        raise _corrupt(file.path, "is no torch checkpoint", expected="a zip archive", actual=f"bytes {head[:8].hex()}")
    flaw = flaw_of(file.real)
    if flaw is not None:
        reason = Reason.TRUNCATED_FILE if flaw.kind == "cut" else Reason.CORRUPT_FILE
        message = f"{file.path} {flaw.what}"
        raise fail(reason, Phase.STAGE, message, file=file.path, expected=flaw.expected, actual=flaw.actual)


def _check_safetensors(file: SourceFile, head: bytes) -> None:
    """A safetensors file: its header says how long the file has to be."""
    length = int.from_bytes(head[:SAFETENSORS_LENGTH_BYTES], "little")
    if not 2 <= length <= SAFETENSORS_MAX_HEADER_BYTES or head[SAFETENSORS_LENGTH_BYTES:][:1] != b"{":
        raise _corrupt(file.path, "is no safetensors file", expected="its header", actual=f"bytes {head[:8].hex()}")
    with open_regular(file.real) as stream:
        stream.seek(SAFETENSORS_LENGTH_BYTES)
        header = stream.read(length)
    try:
        tensors = [entry for name, entry in json.loads(header).items() if name != "__metadata__"]
        data = max((entry["data_offsets"][1] for entry in tensors), default=0)
        expected = SAFETENSORS_LENGTH_BYTES + length + data
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        if len(header) < length:
            expected = SAFETENSORS_LENGTH_BYTES + length
        else:
            raise _corrupt(file.path, "has a safetensors header that cannot be read", actual=error) from error
    if file.size < expected:
        raise _truncated(
            file.path,
            "is cut off, copy it again",
            expected=f"at least {expected} bytes",
            actual=f"{file.size} bytes",
        )


CHECKS: dict[str, Callable[[SourceFile, bytes], None]] = {
    ".pt": _check_checkpoint,
    ".safetensors": _check_safetensors,
}


def _lfs_pointer(file: SourceFile, head: bytes) -> WorkerError:
    """The pointer says itself how large the real file is."""
    sizes = [line.split(b" ", 1)[1].decode("ascii", "replace") for line in head.splitlines() if line[:5] == b"size "]
    return fail(
        Reason.LFS_POINTER,
        Phase.STAGE,
        f"{file.path} is a git-lfs pointer, not the file: run `git lfs pull` in the clone and copy the directory again",
        file=file.path,
        expected=f"{sizes[0]} bytes" if sizes else None,
        actual=f"a pointer of {file.size} bytes",
    )


def _truncated(path: str, what: str, *, expected: str, actual: str) -> WorkerError:
    return fail(Reason.TRUNCATED_FILE, Phase.STAGE, f"{path} {what}", file=path, expected=expected, actual=actual)


def _corrupt(path: str, what: str, *, expected: object = None, actual: object = None) -> WorkerError:
    return fail(Reason.CORRUPT_FILE, Phase.STAGE, f"{path} {what}", file=path, expected=expected, actual=actual)

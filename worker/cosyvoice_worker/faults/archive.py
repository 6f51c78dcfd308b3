"""Rewrites a PyTorch checkpoint's zip archive around a changed pickle."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

PICKLE = "/data.pkl"
PROTOCOL_BYTES = 2  # the pickle's first instruction: PROTO and its version

_ALIGNMENT = 64  # PyTorch maps records where they stand, and wants them there
_LOCAL_HEADER_BYTES = 30
_EXTRA_HEADER = struct.Struct("<2sH")
_PADDING = b"FB"  # as PyTorch calls the extra field that it pads with


def rewrite(source: Path, target: Path, instructions: bytes) -> None:
    """Write `target` like `source`, but with `instructions` at the beginning of its pickle.

    The pickle machine runs them, leaves what they built below the checkpoint on its stack, and forgets it at the end.
    """
    with zipfile.ZipFile(source) as good, zipfile.ZipFile(target, "w") as bad:
        for member in good.infolist():
            content = good.read(member)
            info = zipfile.ZipInfo(member.filename)
            if member.filename.endswith(PICKLE):
                content = content[:PROTOCOL_BYTES] + instructions + content[PROTOCOL_BYTES:]
            info.extra = _padding(bad, info)
            bad.writestr(info, content)


def _padding(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The extra field that lets the record's content begin at a boundary."""
    if archive.fp is None:
        raise ValueError("the archive is closed")
    end_of_header = archive.fp.tell() + _LOCAL_HEADER_BYTES + len(info.filename.encode()) + _EXTRA_HEADER.size
    count = -end_of_header % _ALIGNMENT
    return _EXTRA_HEADER.pack(_PADDING, count) + b"Z" * count

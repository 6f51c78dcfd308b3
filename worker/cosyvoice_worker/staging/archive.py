"""The zip archive that torch.save writes, held against its file: nothing is unpacked, and no tensor looked at."""

from __future__ import annotations

import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong; `what` goes on after the file's name. `cut`: the end is missing."""

    kind: Literal["cut", "damaged"]
    what: str
    expected: str | None = None
    actual: str | None = None


def flaw_of(path: Path) -> Flaw | None:
    """What keeps the file from being whole: records that are there, as they are told, and not compressed.

    What a record claims to be long is allocated by whoever reads it, so it has to be there. Raises OSError.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            end_of_data = archive.start_dir
    except (ValueError, struct.error) as error:
        return Flaw("damaged", "has a zip directory that cannot be read: copy it again", actual=str(error))
    except (zipfile.BadZipFile, NotImplementedError):
        what = "ends before its zip directory: the file is cut off, copy it again"
        size = path.stat().st_size
        return Flaw("cut", what, expected="a zip directory at the end", actual=f"{size} bytes without one")
    packed = [member.filename for member in members if member.compress_type != zipfile.ZIP_STORED]
    if packed:
        # torch.save never compresses; a small file could unpack to any size.
        return Flaw(
            "damaged",
            f"is a zip archive with compressed records ({packed[0]!r:.60}), not what torch.save writes",
            expected="stored records",
            actual=f"{len(packed)} compressed of {len(members)}",
        )
    lying = [member.filename for member in members if member.file_size != member.compress_size]
    if lying:
        return Flaw(
            "damaged",
            f"is a zip archive whose records do not have the sizes that it tells ({lying[0]!r:.60}): copy it again",
            expected="one size for each record",
            actual=f"two for {len(lying)} of {len(members)}",
        )
    # zipfile shifts all offsets by what is missing or too much in front of the directory, so a whole file starts at 0.
    begin = min((member.header_offset for member in members), default=None)
    beyond = [member for member in members if member.header_offset + member.compress_size > end_of_data]
    if begin != 0 or beyond:
        return Flaw(
            "damaged",
            "has lost or gained bytes in its middle: copy it again",
            expected=f"{len(members)} records within bytes 0 to {end_of_data}",
            actual=f"the first at {begin}, {len(beyond)} beyond the end",
        )
    return None

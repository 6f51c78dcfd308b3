"""Pack files: reading one without ever blocking or reading too much, and writing one in one step."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cosyvoice_worker.outcome import Reason
from cosyvoice_worker.regular_files import open_regular
from cosyvoice_worker.voices import limits, pack
from cosyvoice_worker.voices.errors import VoiceError, refuse
from cosyvoice_worker.voices.pack import Pack

_REASONS: dict[type[OSError], Reason] = {
    FileNotFoundError: Reason.MISSING_FILE,
    PermissionError: Reason.ACCESS_DENIED,
}
_MODE = 0o644


def read(path: Path) -> Pack:
    """The pack at `path`. Raises VoiceError when it cannot be opened, is no regular file, is too large or malformed."""
    try:
        with open_regular(path) as stream:
            status = os.fstat(stream.fileno())
            content = stream.read(limits.MAX_PACK_BYTES + 1)
    except OSError as error:
        raise unusable(path, "cannot be read", error) from error
    if len(content) > limits.MAX_PACK_BYTES:
        expected = f"at most {limits.MAX_PACK_BYTES} bytes"
        raise refuse("too large for a voice pack", file=str(path), expected=expected, actual=status.st_size)
    return pack.decode(content, str(path))


def write(content: Pack, path: Path) -> None:
    """Write `path` in one step, replacing what was there: a reader sees the old pack or the new one, never a part."""
    encoded = pack.encode(content, str(path))
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as temporary:
            try:
                temporary.write(encoded)
                temporary.flush()
                os.fchmod(temporary.fileno(), _MODE)
                os.fsync(temporary.fileno())
                Path(temporary.name).replace(path)
            except BaseException:
                Path(temporary.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise unusable(path, "cannot be written", error) from error


def unusable(path: Path, what: str, error: OSError) -> VoiceError:
    """The VoiceError for a file that the system does not let us read or write."""
    reason = _REASONS.get(type(error), Reason.CORRUPT_FILE)
    return refuse(f"{what} ({error.strerror or type(error).__name__})", file=str(path), reason=reason)

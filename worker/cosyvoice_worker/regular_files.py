"""Opening files that a stranger has put there: what is no regular file is refused, and nothing is waited for."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path


def open_regular(path: Path) -> io.BufferedReader:
    """The file at `path`, to be read; it may be a link to one.

    Raises OSError, also where it is a directory, a device or a named pipe: opening one of these may never come back,
    and reading it never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        number = errno.EISDIR if stat.S_ISDIR(kind) else errno.EINVAL
        raise OSError(number, os.strerror(number) if number == errno.EISDIR else "not a regular file", str(path))
    return open(descriptor, "rb")

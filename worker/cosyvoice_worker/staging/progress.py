"""How far a running stager is: `progress.json` for whoever looks in, a log line now and then, and signs of life."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from pathlib import Path

from cosyvoice_worker.names import STAGING_PROGRESS
from cosyvoice_worker.staging.activity import Tell

LOG_EVERY_SECONDS = 5.0
WRITE_EVERY_SECONDS = 1.0

log = logging.getLogger(__name__)


def read_text(root: Path) -> str:
    """What the stager at work under `root` has written last, to be compared; empty when there is none."""
    try:
        return (root / STAGING_PROGRESS).read_text()
    except OSError:
        return ""


class Progress:
    """Counts bytes of `total` that are copied for `revision`. `end` removes the file."""

    def __init__(self, root: Path, revision: str, total: int, tell: Tell) -> None:
        self.path = root / STAGING_PROGRESS
        self.revision = revision
        self.total = total
        self._tell = tell
        self.done = 0
        self._logged = self._written = time.monotonic()
        self._write("")

    def add(self, file: str, count: int) -> None:
        """`count` more bytes, of `file`."""
        self.done += count
        self._tell(f"copying {file} ({self.done} of {self.total} bytes so far)", file)
        now = time.monotonic()
        if now - self._written >= WRITE_EVERY_SECONDS:
            self._written = now
            self._write(file)
        if now - self._logged >= LOG_EVERY_SECONDS:
            self._logged = now
            percent = 100 * self.done // self.total
            log.info(
                "staging", extra={"file": file, "done_bytes": self.done, "total_bytes": self.total, "percent": percent}
            )

    def end(self) -> None:
        self.path.unlink(missing_ok=True)

    def _write(self, file: str) -> None:
        """By rename, so that a reader never sees half of it. A full tmpfs is the copy's to report, not ours."""
        aside = self.path.with_suffix(".tmp")
        with contextlib.suppress(OSError):
            document = {"revision": self.revision, "file": file, "doneBytes": self.done, "totalBytes": self.total}
            aside.write_text(json.dumps(document))
            os.replace(aside, self.path)  # noqa: PTH105 - its name says that the target may exist

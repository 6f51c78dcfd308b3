"""How far a running stager is: `progress.json` for whoever looks in, and a log line every few seconds."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from pathlib import Path

from cosyvoice_worker.names import STAGING_PROGRESS

LOG_EVERY_SECONDS = 5.0
WRITE_EVERY_SECONDS = 1.0

log = logging.getLogger(__name__)


class Progress:
    """Counts bytes of `total`; `clock` gives seconds. Use as a context manager: the file is gone afterwards."""

    def __init__(self, root: Path, total: int) -> None:
        self.path = root / STAGING_PROGRESS
        self.total = total
        self.done = 0
        self._logged = self._written = time.monotonic()
        self._write("")

    def add(self, file: str, count: int) -> None:
        """`count` more bytes, of `file`."""
        self.done += count
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
            aside.write_text(json.dumps({"file": file, "doneBytes": self.done, "totalBytes": self.total}))
            os.replace(aside, self.path)  # noqa: PTH105 - its name says that the target may exist

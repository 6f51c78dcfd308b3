"""Logs: one JSON object a line, with the facts as fields of their own (`extra={"model": "speech/narrator"}`)."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

FIELDS = (
    *("model", "revision", "version", "reason", "kind", "object", "seconds", "status", "port", "identity"),
    *("node", "root", "pod", "container", "bytes"),  # the node agent's
)


class JSONFormatter(logging.Formatter):
    """Time, level, logger and message first, then those of FIELDS that the record has."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def configure(level: int) -> None:
    """Everything to standard error; the libraries only from warnings on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("cosyvoice_operator").setLevel(level)

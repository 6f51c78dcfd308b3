"""Structured logs: one JSON object a line on standard error, with the model and the revision in each."""

from __future__ import annotations

import json
import logging
import os
import sys
import time

# What every LogRecord has by itself; anything else came in through `extra` and is a field of the line.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JSONFormatter(logging.Formatter):
    """`log.info("staged", extra={"bytes": 5})` becomes `{"time":…,"level":"info","message":"staged","bytes":5}`."""

    def __init__(self, context: dict[str, str]) -> None:
        super().__init__()
        self.context = context

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self.context,
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str)
        # JSON leaves as they are what a terminal obeys: control characters that are no ASCII, changes of direction.
        return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def configure(program: str, **context: str) -> None:
    """Send all logging of this process to standard error as JSON. `context` (model, revision) goes into every line.

    Called again, it replaces the context: the first lines of a program are written before its configuration is read.
    """
    fields = {"program": program, **context}
    if pod := os.environ.get("HOSTNAME"):
        fields["pod"] = pod
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter(fields))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)

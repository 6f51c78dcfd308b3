"""What a worker answers on its admin port's /status: the tolerant parser. The answer is untrusted."""

from __future__ import annotations

import json

from cosyvoice_operator import termination
from cosyvoice_operator.names import STATUS_SCHEMA
from cosyvoice_operator.observed import WorkerStatus

MAX_BYTES = 64 * 1024
PHASES = ("Start", "Import", "Map", "Build", "WarmUp", "Ready", "Failed")
LOAD_PHASES = ("import", "map", "build", "warmUp", "total")


def parse(body: bytes) -> WorkerStatus | None:
    """The status, or None where `body` is not one of a schema and phase this operator knows."""
    if len(body) > MAX_BYTES:
        return None
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or fields.get("schema") != STATUS_SCHEMA or fields.get("phase") not in PHASES:
        return None
    load = fields.get("load")
    seconds = {name: termination.number(load.get(name)) for name in LOAD_PHASES} if isinstance(load, dict) else {}
    return WorkerStatus(
        phase=fields["phase"], load={name: value for name, value in seconds.items() if value is not None}
    )

"""What a worker answers on its admin port's /status: the tolerant parser. The answer is untrusted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from cosyvoice_operator import termination
from cosyvoice_operator.names import STATUS_SCHEMA
from cosyvoice_operator.observed import MemoryHigh, Swap, WorkerStatus

MAX_BYTES = 64 * 1024
PHASES = ("Start", "Import", "Map", "Build", "WarmUp", "Ready", "Failed")
LOAD_PHASES = ("import", "map", "build", "warmUp", "total")
SWAP_STATES = ("Staging", "Loading", "Switched", "Failed")
MEMORY_HIGH_STATES = ("Applied", "NotApplied", "Unknown")
MEMORY_HIGH_ROUTES = ("Delegated", "NodeAgent", "Other")
MAX_REASON = 300

_REVISION = re.compile(r"[a-z0-9]{1,63}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_ORDER = re.compile(r"[a-z0-9]{1,63}\.[0-9]{1,9}", re.ASCII)


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
    found = fields.get("staged")
    staged: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    return WorkerStatus(
        phase=fields["phase"],
        load={name: value for name, value in seconds.items() if value is not None},
        revision=_matching(_REVISION, fields.get("revision")),
        digest=_matching(_DIGEST, fields.get("digest")),
        staged_bytes=termination.whole_number(staged.get("bytes")),
        staged_seconds=termination.number(staged.get("seconds")),
        swap=_swap(fields.get("swap")),
        memory_high=_memory_high(fields.get("memoryHigh")),
    )


def _swap(fields: object) -> Swap | None:
    """The swap, or None where the worker has no order that can be read."""
    if not isinstance(fields, Mapping):
        return None
    order, state, failure = _matching(_ORDER, fields.get("order")), fields.get("state"), fields.get("failure")
    if order is None or state not in SWAP_STATES:
        return None
    said: Mapping[str, Any] = failure if isinstance(failure, Mapping) else {}
    phase = fields.get("phase")
    return Swap(
        order=order,
        state=state,
        phase=phase if phase in PHASES else None,
        room=fields.get("room") is True,
        failure=termination.from_fields(said),
    )


def _memory_high(fields: object) -> MemoryHigh | None:
    """What came of memory.high, or None where the worker has no such wish, or says it in no way that can be read."""
    if not isinstance(fields, Mapping):
        return None
    wanted, state, route = (fields.get(name) for name in ("wanted", "state", "route"))
    bytes_wanted, applied = termination.whole_number(wanted), termination.whole_number(fields.get("applied"))
    if bytes_wanted is None or state not in MEMORY_HIGH_STATES or (state == "Applied" and applied is None):
        return None
    return MemoryHigh(
        wanted=bytes_wanted,
        state=state,
        applied=applied,
        route=route if route in MEMORY_HIGH_ROUTES else None,
        reason=(termination.clean(fields.get("reason")) or "")[:MAX_REASON] or None,
    )


def _matching(pattern: re.Pattern[str], value: object) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None

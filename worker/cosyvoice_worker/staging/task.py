"""What a stager is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cosyvoice_worker.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Stage the version of `settings`, whose text is `document`.

    Symbolic links of the source may lead anywhere inside `boundary`. `at_start`: it is what the pod starts with.
    `keep` names the versions that must stay whether a process maps them or not; all others make room as soon as no
    process maps them, and what is short of room waits `patience_seconds` for that.
    """

    settings: Settings
    document: bytes
    boundary: Path
    at_start: bool = True
    keep: frozenset[str] = frozenset()
    patience_seconds: float = 0.0

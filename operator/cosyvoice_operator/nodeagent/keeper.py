"""One pass over the kernel's files: what every worker container of this node has, and what it is to have."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cosyvoice_operator.names import AGENT_MARK
from cosyvoice_operator.nodeagent.decision import Release, Seen, Set, decide
from cosyvoice_operator.nodeagent.pods import WorkerContainer
from cosyvoice_operator.nodeagent.tree import find_container

HIGH = "memory.high"
MAX = "max"
# The leaf that a worker makes where its cgroup is writable (cosyvoice_worker.cgroup.places).
DELEGATED = "front"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Change:
    """What was written: `high` in bytes, or None for max."""

    container: WorkerContainer
    high: int | None


class Keeper:
    """`root` is the cgroup hierarchy of the node, or a part of it with all pods below."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, Path] = {}

    def keep(self, containers: Iterable[WorkerContainer]) -> tuple[Change, ...]:
        """Bring every container to what it is to have. What cannot be written is logged and tried again next time."""
        wanted = tuple(containers)
        running = {one.container_id for one in wanted}
        self._known = {found: path for found, path in self._known.items() if found in running}
        changes = []
        for one in wanted:
            try:
                change = self._keep(one)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            except OSError as error:
                logger.warning("memory.high cannot be set: %s", error, extra=_about(one))
                continue
            if change is not None:
                logger.info("memory.high is set", extra={**_about(one), "bytes": change.high or MAX})
                changes.append(change)
        return tuple(changes)

    def _keep(self, one: WorkerContainer) -> Change | None:
        cgroup = self._find(one)
        if cgroup is None:
            return None
        match decide(one.wanted, _look(cgroup), PAGE_BYTES):
            case Set(high=high):
                os.setxattr(cgroup, AGENT_MARK, str(high).encode())
                _write(cgroup / HIGH, str(high))
                return Change(one, high)
            case Release(restore=restore):
                if restore:
                    _write(cgroup / HIGH, MAX)
                os.removexattr(cgroup, AGENT_MARK)
                return Change(one, None) if restore else None
            case None:
                return None

    def _find(self, one: WorkerContainer) -> Path | None:
        known = self._known.get(one.container_id)
        if known is None or not known.is_dir():
            known = find_container(self._root, one.uid, one.container_id)
            if known is None:
                return None
            self._known[one.container_id] = known
        return known


def _look(cgroup: Path) -> Seen:
    said = (cgroup / HIGH).read_text(encoding="ascii").strip()
    return Seen(
        high=None if said == MAX else int(said),
        marked=_mark(cgroup),
        delegated=(cgroup / DELEGATED).is_dir(),
    )


def _mark(cgroup: Path) -> int | None:
    try:
        return int(os.getxattr(cgroup, AGENT_MARK))
    except (OSError, ValueError):
        return None


def _write(file: Path, content: str) -> None:
    with file.open("w", encoding="ascii") as kernel:
        kernel.write(content)


def _about(one: WorkerContainer) -> dict[str, str]:
    return {"pod": f"{one.namespace}/{one.pod}", "container": one.container_id[:12]}

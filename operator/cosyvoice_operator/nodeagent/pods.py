"""The worker containers of a node, and the memory.high that each is to have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cosyvoice_operator import names

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_CONTAINER_ID = re.compile(r"[a-z0-9-]+://([0-9a-f]{64})", re.ASCII)
_BYTES = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
# No machine has so much, and what is near 2^63 the kernel takes for max, which it would be told again and again.
BYTES_BEYOND_ALL = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContainer:
    """A worker container that runs. `wanted` is its memory.high in bytes (None: no wish)."""

    namespace: str
    pod: str
    uid: str
    container_id: str
    wanted: int | None


def parse(pods: Mapping[str, Any]) -> tuple[WorkerContainer, ...]:
    """Those of a PodList. A label that is no number of bytes is no wish."""
    return tuple(found for pod in pods.get("items") or () for found in _workers(pod))


def _workers(pod: Mapping[str, Any]) -> Iterator[WorkerContainer]:
    metadata = pod["metadata"]
    wanted = _wish((metadata.get("labels") or {}).get(names.LABEL_MEMORY_HIGH) or "")
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        found = _CONTAINER_ID.fullmatch(status.get("containerID") or "")
        runs = "running" in (status.get("state") or {})
        if status.get("name") == names.WORKER_CONTAINER and runs and found and _UID.fullmatch(metadata["uid"]):
            yield WorkerContainer(
                namespace=metadata["namespace"],
                pod=metadata["name"],
                uid=metadata["uid"],
                container_id=found[1],
                wanted=wanted,
            )


def _wish(label: str) -> int | None:
    count = int(label) if _BYTES.fullmatch(label) else None
    return None if count is None or count >= BYTES_BEYOND_ALL else count

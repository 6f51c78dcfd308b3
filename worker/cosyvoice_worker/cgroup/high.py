"""What came of the wish for memory.high: read back from the kernel, whoever wrote it there.

Kubernetes has no field for it. It is set on the engine's own cgroup where that is ours (`delegation`), else on the
container's from outside: by the chart's node agent, an NRI plugin, or the kubelet's MemoryQoS.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from cosyvoice_worker.cgroup.places import MEMBERSHIP, MOUNT, container, is_unified, text
from cosyvoice_worker.names import AGENT_MARK

State = Literal["Applied", "NotApplied", "Unknown"]
Route = Literal["Delegated", "NodeAgent", "Other"]

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
NO_VERSION_1 = "this node has cgroup v1, whose kernel interface has no memory.high"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHigh:
    """`wanted` and `applied` in bytes; `route` says who applied it, `reason` why it is not as wanted."""

    wanted: int
    state: State
    applied: int | None = None
    route: Route | None = None
    reason: str | None = None

    def document(self) -> dict[str, object]:
        """As docs/architecture.md describes it."""
        return asdict(self)


def is_marked(directory: Path) -> bool:
    """Whether the node agent says that it set this cgroup's memory.high."""
    try:
        os.getxattr(directory, AGENT_MARK)
    except OSError:
        return False
    return True


def read_back(
    wanted: int,
    leaf: Path | None,
    why_not_delegated: str = "",
    *,
    mount: Path = MOUNT,
    membership: Path = MEMBERSHIP,
    page: int = PAGE_BYTES,
    marked: Callable[[Path], bool] = is_marked,
) -> MemoryHigh:
    """What the kernel has for the engine's cgroup `leaf`, or without one for the container's.

    `wanted` counts as applied when the kernel has it, rounded down to whole pages of `page` bytes as it does.
    """
    if not is_unified(mount):
        return MemoryHigh(wanted=wanted, state="Unknown", reason=NO_VERSION_1)
    directory = leaf or container(mount, membership)
    said = text(directory / "memory.high")
    if said == "max":
        reason = (
            f"nothing has set memory.high: {why_not_delegated}, and neither a node agent nor the kubelet has done it"
        )
        return MemoryHigh(wanted=wanted, state="NotApplied", reason=reason)
    if not said.isdecimal():
        return MemoryHigh(wanted=wanted, state="Unknown", reason="the kernel shows no memory.high to this container")
    route: Route = "Delegated" if leaf is not None else "NodeAgent" if marked(directory) else "Other"
    if int(said) == wanted - wanted % page:
        return MemoryHigh(wanted=wanted, state="Applied", applied=int(said), route=route)
    reason = f"memory.high is {said} bytes where {wanted} are wanted: something else on the node has set it"
    return MemoryHigh(wanted=wanted, state="NotApplied", applied=int(said), route=route, reason=reason)

"""The condition MemoryHighApplied on a real API server: it follows what workers read back, and writes nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cosyvoice_operator import names
from cosyvoice_operator.cluster import Cluster
from tests.apiserver.control_plane import ControlPlane
from tests.apiserver.episode import MODEL, Episode

GIB = 2**30
APPLIED = {"state": "Applied", "applied": 6 * GIB, "route": "NodeAgent"}


class Throttled:
    """A model whose workers are to have memory.high at 6Gi."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode

    async def apply(self, **worker: Any) -> None:
        await self.episode.apply(version="v1", worker={"replicas": 2, **worker})
        await self.episode.settle()

    async def status(self) -> dict[str, Any]:
        found = await self.episode.admin.get(names.KIND, self.episode.namespace, MODEL)
        assert found is not None
        status: dict[str, Any] = found["status"]
        return status

    async def condition(self) -> tuple[str, str, str] | None:
        for found in (await self.status())["conditions"]:
            if found["type"] == "MemoryHighApplied":
                return found["status"], found["reason"], found["message"].partition(": ")[2] or found["message"]
        return None

    async def labels(self) -> set[str | None]:
        """What the pods say to the node agent."""
        pods = await self.episode.admin.list("Pod", self.episode.namespace)
        return {pod["metadata"]["labels"].get(names.LABEL_MEMORY_HIGH) for pod in pods}


@pytest.fixture
async def throttled(
    control_plane: ControlPlane, admin: Cluster, namespace: str, tmp_path: Path
) -> AsyncIterator[Throttled]:
    async with Episode(control_plane, admin, f"{namespace}-1", tmp_path, {}) as episode:
        await episode.start_operator()
        yield Throttled(episode)


async def test_it_follows_the_kernel_and_goes_with_the_wish(throttled: Throttled) -> None:
    await throttled.apply(memoryHigh="6Gi")
    assert await throttled.condition() == ("Unknown", "NotSupported", "this node has cgroup v1 (wanted: 6Gi)")
    assert await throttled.labels() == {str(6 * GIB)}
    assert (await throttled.status())["reason"] == "Ready"

    throttled.episode.kernel_says(state="NotApplied", reason="nothing has set memory.high")
    await throttled.episode.settle()
    assert await throttled.condition() == ("False", "NotApplied", "nothing has set memory.high (wanted: 6Gi)")

    throttled.episode.kernel_says(**APPLIED)
    await throttled.episode.settle()
    applied = "memory.high is 6Gi on the worker container, by the node agent"
    assert await throttled.condition() == ("True", "Applied", applied)

    written = len(throttled.episode.writes)
    for current in range(2):
        throttled.episode.kernel_says(**APPLIED, current=current)
        await throttled.episode.settle()
    assert throttled.episode.writes[written:] == []

    await throttled.apply()
    assert await throttled.condition() is None
    assert await throttled.labels() == {None}


async def test_a_value_that_cannot_work_is_refused_and_what_serves_goes_on(throttled: Throttled) -> None:
    throttled.episode.kernel_says(**APPLIED)
    await throttled.apply(memoryHigh="6Gi")
    pods = await throttled.episode.pods()

    await throttled.apply(memoryHigh="8Gi")

    status = await throttled.status()
    assert (status["reason"], status["ready"]) == ("InvalidSpec", "2/2")
    assert "8192 MiB is not below the worker's memory limit of 8192 MiB" in status["message"]
    assert await throttled.episode.pods() == pods

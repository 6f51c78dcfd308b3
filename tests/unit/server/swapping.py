"""Fronts that are told to serve another revision, and engines for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.unit.server import fake_engine
from tests.unit.server.fake_engine import FakeEngine, Script
from tests.unit.server.pod import Pod
from tests.unit.server.running_front import RunningFront, running_front

OLD = "3f9a1c0b7d"
NEW = "b1b2b3b4b5"


@asynccontextmanager
async def pod_with(tmp_path: Path, *scripts: Script, **options: Any) -> AsyncIterator[tuple[Pod, RunningFront]]:
    async with running_front(*scripts, root=tmp_path, **options) as front:
        yield Pod(tmp_path), front


async def swap_of(front: RunningFront, *states: str, order: str = "") -> dict[str, Any]:
    """The swap that the status tells, once it is in one of `states` (and that of `order`, where it matters)."""

    def there() -> bool:
        swap = front.front.state.swap
        return swap is not None and swap.state in states and swap.order.startswith(order)

    await front.until(there)
    document: dict[str, Any] = (await front.ask("GET", "/status", admin=True)).json["swap"]
    return document


class Gate:
    """An engine that loads when it may."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, engine: FakeEngine) -> None:
        await self.open.wait()
        await fake_engine.good(engine)

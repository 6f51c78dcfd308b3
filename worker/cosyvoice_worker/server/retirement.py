"""The end of an engine whose place another one has taken."""

from __future__ import annotations

import asyncio

from cosyvoice_worker.server.engine_life import EngineLife


async def retire(life: EngineLife) -> None:
    """Let the engine finish the request it has, then end it; returns when it has ended, however that came."""
    loop = asyncio.get_running_loop()
    if life.lane is None:
        life.engine.kill()
    else:
        idle = loop.create_task(life.lane.idle.wait())
        await asyncio.wait({idle, life.ended}, return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
    ending = loop.create_task(life.shut_down())
    await asyncio.wait({life.ended})
    ending.cancel()

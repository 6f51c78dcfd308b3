"""Which voices can be asked for, looked up off the event loop: packs are read from disk, and again when they change."""

from __future__ import annotations

import asyncio
from typing import Protocol

from cosyvoice_worker.voices.registry import ListedVoice, VoiceRegistry


class Voices(Protocol):
    """The voices of the model that is served."""

    async def names(self) -> list[str]:
        """Those that can be used, sorted."""

    async def listed(self) -> list[ListedVoice]:
        """All of them, the broken ones too."""


class RegistryVoices:
    """The voices of a registry, which is used by one thread at a time."""

    def __init__(self, registry: VoiceRegistry) -> None:
        self._registry = registry
        self._lock = asyncio.Lock()

    async def names(self) -> list[str]:
        return [voice.name for voice in await self.listed() if voice.broken is None]

    async def listed(self) -> list[ListedVoice]:
        async with self._lock:
            return list((await asyncio.to_thread(self._registry.voices)).values())

"""Which voices can be asked for, looked up off the event loop: packs are read from disk, and again when they change."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

from cosyvoice_worker.voices.registry import ListedVoice, model_voices


class Voices(Protocol):
    """The voices of the model that is served."""

    async def names(self) -> list[str]:
        """Those that can be used, sorted."""

    async def listed(self) -> list[ListedVoice]:
        """All of them, the broken ones too."""

    def follow(self, model: Path) -> None:
        """The model in the directory `model` is the one that is served from now on."""


class RegistryVoices:
    """The voices of the directory `model` and those of the mounted `config`; looked up by one thread at a time."""

    def __init__(self, model: Path, config: Path) -> None:
        self._config = config
        self._lock = asyncio.Lock()
        self.follow(model)

    def follow(self, model: Path) -> None:
        self._registry = model_voices(model, self._config)

    async def names(self) -> list[str]:
        return [voice.name for voice in await self.listed() if voice.broken is None]

    async def listed(self) -> list[ListedVoice]:
        async with self._lock:
            return list((await asyncio.to_thread(self._registry.voices)).values())

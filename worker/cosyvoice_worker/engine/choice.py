"""Which voice speaks."""

from __future__ import annotations

from cosyvoice_worker.voices.registry import VoiceRegistry
from cosyvoice_worker.voices.voice import Voice, built_in, from_pack


def choose_voice(wanted: str | None, voices: VoiceRegistry) -> Voice:
    """The voice asked for, else the first pack, else the built-in one, so that no pod waits for a user's voice.

    Raises UnknownVoiceError, or VoiceError where the pack asked for is broken.
    """
    name = wanted or next(iter(voices.names()), None)
    return built_in() if name is None else from_pack(name, voices.read(name))

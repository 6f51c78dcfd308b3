"""A voice as arrays: what the engine conditions the model on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosyvoice_worker.voices import limits
from cosyvoice_worker.voices.pack import Pack

BUILT_IN = ""  # no pack can have this name


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Voice:
    """Prompt and speaker of one voice. N = 0: an embedding alone; empty `prompt_text`: the LM gets no prompt tokens."""

    name: str
    prompt_text: str
    prompt_token: NDArray[np.int32]  # (N)
    prompt_mel: NDArray[np.float32]  # (2N, 80)
    embedding: NDArray[np.float32]  # (192), not normalised


def from_pack(name: str, pack: Pack) -> Voice:
    """The arrays of a pack: copies, writable, in the machine's byte order."""
    return Voice(
        name=name,
        prompt_text=pack.prompt_text,
        prompt_token=np.frombuffer(pack.prompt_token, "<i4").astype(np.int32),
        prompt_mel=np.frombuffer(pack.prompt_mel, "<f4").astype(np.float32).reshape(-1, limits.MEL_BINS),
        embedding=np.frombuffer(pack.embedding, "<f4").astype(np.float32),
    )


def built_in() -> Voice:
    """The voice of a model without packs: no prompt and a zero embedding. Nobody's voice, but it runs every module."""
    return Voice(
        name=BUILT_IN,
        prompt_text="",
        prompt_token=np.zeros(0, np.int32),
        prompt_mel=np.zeros((0, limits.MEL_BINS), np.float32),
        embedding=np.zeros(limits.EMBEDDING_SIZE, np.float32),
    )

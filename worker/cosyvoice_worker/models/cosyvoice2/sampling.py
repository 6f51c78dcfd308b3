"""Choosing the next speech token: nucleus sampling, and a second, unrestricted draw where the first repeats itself.

Repetition-aware sampling (Chen et al. 2024, VALL-E 2, arXiv:2406.05370) with a window so narrow that in CosyVoice2's
configuration any repetition counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cosyvoice_worker.models.cosyvoice2.config import SamplingConfig

# Chooses an index of a vector of weights, which need not add up to 1.
Draw = Callable[[Tensor], int]


@dataclass(frozen=True, slots=True)
class Nucleus:
    """The candidates of a draw, most likely first."""

    ids: Tensor  # (c) int64
    weights: Tensor  # (c) float32


def nucleus(scores: Tensor, top_p: float, top_k: int) -> Nucleus:
    """The most likely ids of `scores` (V): at most `top_k`, and as few as reach `top_p` together; at least one."""
    probabilities, ids = scores.softmax(dim=0).sort(descending=True, stable=True)
    probabilities, ids = probabilities[:top_k], ids[:top_k]
    reached_before = probabilities.cumsum(dim=0) - probabilities
    size = max(int((reached_before < top_p).sum()), 1)
    return Nucleus(ids[:size], probabilities[:size])


def drawing(generator: torch.Generator) -> Draw:
    """Draws by weight, with a generator of the request's own (on the CPU, so that every device speaks alike)."""

    def draw(weights: Tensor) -> int:
        return int(torch.multinomial(weights, 1, generator=generator))

    return draw


class RepetitionAwareSampling:
    """The model's way to choose a token. It keeps no state but its draw's."""

    def __init__(self, config: SamplingConfig, draw: Draw) -> None:
        self._config = config
        self._draw = draw

    def __call__(self, scores: Tensor, decoded: Sequence[int]) -> int:
        """The next id, by log-probabilities `scores` (V, float32, on the CPU; not kept) and the ids before it."""
        config = self._config
        candidates = nucleus(scores, config.top_p, config.top_k)
        chosen = int(candidates.ids[self._draw(candidates.weights)])
        if not self._repeats(chosen, decoded):
            return chosen
        return self._draw(without(scores, chosen))

    def _repeats(self, chosen: int, decoded: Sequence[int]) -> bool:
        window = self._config.window
        recent = decoded[-window:] if window else ()
        return sum(token == chosen for token in recent) >= window * self._config.repetition_share


def without(scores: Tensor, repeated: int) -> Tensor:
    """The probabilities (V) of all ids but `repeated`, for the second draw: neither top-p nor top-k restricts it."""
    others = scores.clone()
    others[repeated] = -torch.inf
    return others.softmax(dim=0)

"""The vocoder's excitation, harmonics of a pitch and noise: a neural source filter (`hift.pt`, prefix `m_source.`)."""

from __future__ import annotations

import math
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Noise of an unvoiced sample, as a share of the harmonics' amplitude.
UNVOICED_NOISE = 1 / 3


class Noise(Protocol):
    """Where the source's noise comes from: normal, (1, samples, harmonics), float32."""

    def __call__(self, samples: int, harmonics: int) -> Tensor: ...


class GeneratorNoise:
    """Noise drawn from a request's own generator (on the CPU, so that every device hears the same)."""

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator

    def __call__(self, samples: int, harmonics: int) -> Tensor:
        return torch.randn(1, samples, harmonics, generator=self._generator)


class SineGenerator:
    """Harmonics 1..n of a pitch, as samples."""

    def __init__(
        self, *, harmonics: int, sample_rate: int, hop: int, amplitude: float, noise: float, voiced_threshold: float
    ) -> None:
        """`hop`: samples per mel frame; `noise`: noise of a voiced sample; `voiced_threshold`: Hz."""
        self.harmonics = harmonics
        self.sample_rate = sample_rate
        self.hop = hop
        self.amplitude = amplitude
        self.noise = noise
        self.voiced_threshold = voiced_threshold

    def __call__(self, f0: Tensor, noise: Noise) -> Tensor:
        """f0 (1, T) in Hz -> (1, T * hop, harmonics).

        The phase is summed up per frame and then drawn out linearly to samples. It reaches 1e5 radians in float32, so
        the order of these operations decides what is heard: keep it.
        """
        multiple = torch.arange(1, self.harmonics + 1, device=f0.device, dtype=f0.dtype)
        turns = (f0[..., None] * multiple / self.sample_rate) % 1  # per sample, (1, T, harmonics)
        phase = torch.cumsum(turns, dim=1) * 2 * math.pi
        phase = F.interpolate(phase.transpose(1, 2) * self.hop, scale_factor=float(self.hop), mode="linear")
        sines = torch.sin(phase).transpose(1, 2) * self.amplitude  # (1, L, harmonics)

        voiced = (f0 > self.voiced_threshold).to(f0.dtype).repeat_interleave(self.hop, dim=1)[..., None]
        noise_amplitude = voiced * self.noise + (1 - voiced) * self.amplitude * UNVOICED_NOISE
        return sines * voiced + noise_amplitude * noise(sines.shape[1], self.harmonics).to(f0.device)


class HarmonicSource(nn.Module):
    """Mixes the harmonics to one excitation signal."""

    def __init__(self, sines: SineGenerator) -> None:
        super().__init__()
        self.sines = sines
        self.l_linear = nn.Linear(sines.harmonics, 1)

    def forward(self, f0: Tensor, noise: Noise) -> Tensor:
        """f0 (1, T) in Hz -> (1, 1, T * hop)."""
        mixed: Tensor = self.l_linear(self.sines(f0, noise))
        return torch.tanh(mixed).transpose(1, 2)

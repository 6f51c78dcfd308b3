"""The vocoder's pitch: fundamental frequency per mel frame (`hift.pt`, prefix `f0_predictor.`)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class F0Sizes:
    """Widths and depth of the predictor, as the checkpoint's tensors tell them."""

    mel_channels: int
    channels: int
    layers: int
    kernel: int


class F0Predictor(nn.Module):
    """Convolutions with ELU, then one linear layer."""

    def __init__(self, sizes: F0Sizes) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for index in range(sizes.layers):
            in_channels = sizes.channels if index else sizes.mel_channels
            layers += [nn.Conv1d(in_channels, sizes.channels, sizes.kernel, padding=sizes.kernel // 2), nn.ELU()]
        self.condnet = nn.Sequential(*layers)
        self.classifier = nn.Linear(sizes.channels, 1)

    def forward(self, mel: Tensor) -> Tensor:
        """mel (1, 80, T) -> Hz (1, T); below the voicing threshold means unvoiced."""
        hidden = self.condnet(mel).transpose(1, 2)  # (1, T, C)
        return torch.abs(self.classifier(hidden).squeeze(-1))

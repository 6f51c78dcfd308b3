"""The vocoder's residual blocks: dilated convolutions with a periodic activation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SNAKE_EPS = 1e-9


class Snake(nn.Module):
    """x + sin²(a x) / a, with one a per channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.empty(channels))

    def forward(self, x: Tensor) -> Tensor:
        alpha = self.alpha[:, None]
        return torch.addcmul(x, torch.sin(x * alpha).square_(), (alpha + SNAKE_EPS).reciprocal())


class ResBlock(nn.Module):
    """Pairs of dilated and plain convolutions, each pair with a residual."""

    def __init__(self, channels: int, kernel: int, dilations: tuple[int, ...]) -> None:
        super().__init__()
        self.convs1 = nn.ModuleList(_same_conv(channels, kernel, dilation) for dilation in dilations)
        self.convs2 = nn.ModuleList(_same_conv(channels, kernel, 1) for _ in dilations)
        self.activations1 = nn.ModuleList(Snake(channels) for _ in dilations)
        self.activations2 = nn.ModuleList(Snake(channels) for _ in dilations)

    def forward(self, x: Tensor) -> Tensor:
        for snake1, conv1, snake2, conv2 in zip(
            self.activations1, self.convs1, self.activations2, self.convs2, strict=True
        ):
            x = x + conv2(snake2(conv1(snake1(x))))
        return x


def _same_conv(channels: int, kernel: int, dilation: int) -> nn.Conv1d:
    return nn.Conv1d(channels, channels, kernel, dilation=dilation, padding=(kernel - 1) * dilation // 2)

"""The flow's velocity estimator: a causal one-dimensional U-Net with transformer blocks, at one resolution.

Attribute names are the checkpoint's (`flow.pt`, prefix `decoder.estimator.`). It runs on a batch of two: with and
without the condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from cosyvoice_worker.models.cosyvoice2.attention import chunk_mask
from cosyvoice_worker.models.cosyvoice2.unet_blocks import (
    CausalBlock,
    CausalConv1d,
    ResidualBlock,
    TimeEmbedding,
    TransformerBlock,
)


@dataclass(frozen=True, slots=True)
class UNetSizes:
    """Widths and depths of the estimator, as the checkpoint's tensors tell them."""

    in_channels: int  # x, mu, speaker and prompt side by side; also the width of the time sinusoids
    out_channels: int
    channels: int
    time_channels: int
    inner: int  # of the attention: heads * head_dim
    hidden: int  # of the feed-forward layers
    blocks: int  # transformer blocks after each residual block
    mid_blocks: int
    kernel: int


class Transformers(nn.ModuleList):
    """Transformer blocks one after the other. (B, C, T) -> (B, C, T)."""

    def forward(self, x: Tensor, mask: Tensor | None, on_step: Callable[[], None]) -> Tensor:
        x = x.transpose(1, 2)
        for block in self:
            on_step()
            x = block(x, mask)
        return x.transpose(1, 2)


class Stage(nn.ModuleList):
    """A residual block, its transformer blocks, and the convolution after them if the stage has one."""

    def __init__(self, sizes: UNetSizes, heads: int, in_channels: int, *, convolution: bool) -> None:
        blocks = Transformers(
            TransformerBlock(sizes.channels, sizes.inner, heads, sizes.hidden) for _ in range(sizes.blocks)
        )
        super().__init__([ResidualBlock(in_channels, sizes.channels, sizes.time_channels, sizes.kernel), blocks])
        if convolution:
            self.append(CausalConv1d(sizes.channels, sizes.channels, sizes.kernel))

    def forward(self, x: Tensor, time: Tensor, mask: Tensor | None, on_step: Callable[[], None]) -> Tensor:
        """Everything but the convolution: the skip connection starts before it. (B, C, T) -> (B, channels, T)."""
        residual, blocks = self[0], self[1]
        out: Tensor = blocks(residual(x, time), mask, on_step)
        return out


class CausalUNet(nn.Module):
    """Velocity of the mel at time t, given what it should become."""

    def __init__(self, sizes: UNetSizes, heads: int, chunk: int) -> None:
        """`chunk`: mel frames a streaming query sees at once."""
        super().__init__()
        width = sizes.channels
        self.chunk = chunk
        self.time_mlp = TimeEmbedding(sizes.in_channels, sizes.time_channels)
        self.down_blocks = nn.ModuleList([Stage(sizes, heads, sizes.in_channels, convolution=True)])
        self.mid_blocks = nn.ModuleList(Stage(sizes, heads, width, convolution=False) for _ in range(sizes.mid_blocks))
        # Twice the width: the skip connection joins the input.
        self.up_blocks = nn.ModuleList([Stage(sizes, heads, 2 * width, convolution=True)])
        self.final_block = CausalBlock(width, width, sizes.kernel)
        self.final_proj = nn.Conv1d(width, sizes.out_channels, 1)

    def forward(self, x: Tensor, t: Tensor, *, streaming: bool, on_step: Callable[[], None]) -> Tensor:
        """x (B, in_channels, T): noisy mel, mu, speaker, prompt mel; t (1) or (B). Returns (B, out_channels, T).

        `on_step` is called before each transformer block.
        """
        mask = chunk_mask(x.shape[2], self.chunk, x.device) if streaming else None
        time = self.time_mlp(t)
        down, up = cast(Stage, self.down_blocks[0]), cast(Stage, self.up_blocks[0])
        skip = down(x, time, mask, on_step)
        x = down[2](skip)
        for stage in self.mid_blocks:
            x = stage(x, time, mask, on_step)
        x = up[2](up(torch.cat((x, skip), dim=1), time, mask, on_step))
        out: Tensor = self.final_proj(self.final_block(x))
        return out

"""The flow's velocity estimator: a causal one-dimensional U-Net with transformer blocks, at one resolution.

Attribute names are the checkpoint's (`flow.pt`, prefix `decoder.estimator.`). It runs on a batch of two: with and
without the condition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cosyvoice_worker.models.cosyvoice2.attention import chunk_mask, split_heads

LAYER_NORM_EPS = 1e-5
TIME_SCALE = 1000.0
MAX_PERIOD = 10000.0


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


class TimeEmbedding(nn.Module):
    """Sinusoids of the solver's time in [0, 1], then two linear layers. (B) -> (B, time_channels)."""

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.bands = width // 2
        self.linear_1 = nn.Linear(width, channels)
        self.linear_2 = nn.Linear(channels, channels)

    def forward(self, t: Tensor) -> Tensor:
        step = torch.arange(self.bands, device=t.device).float()
        frequency = torch.exp(step * -(math.log(MAX_PERIOD) / (self.bands - 1)))
        angle = TIME_SCALE * t[:, None] * frequency
        out: Tensor = self.linear_2(F.silu(self.linear_1(torch.cat((angle.sin(), angle.cos()), dim=-1))))
        return out


class CausalConv1d(nn.Conv1d):
    """A convolution that sees the past only: zeros on the left."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the name of nn.Conv1d
        return super().forward(F.pad(input, (self.kernel_size[0] - 1, 0)))


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of (B, C, T)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the name of nn.LayerNorm
        return super().forward(input.transpose(1, 2)).transpose(1, 2)


class CausalBlock(nn.Module):
    """Causal convolution, norm, Mish. The norm is the sequence's third entry in the checkpoint."""

    def __init__(self, in_channels: int, channels: int, kernel: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            CausalConv1d(in_channels, channels, kernel),
            nn.Identity(),
            ChannelNorm(channels, eps=LAYER_NORM_EPS),
            nn.Identity(),
            nn.Mish(),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.block(x)
        return out


class ResidualBlock(nn.Module):
    """Two causal blocks with the time added between them, and a 1x1 convolution around both."""

    def __init__(self, in_channels: int, channels: int, time_channels: int, kernel: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Mish(), nn.Linear(time_channels, channels))
        self.block1 = CausalBlock(in_channels, channels, kernel)
        self.block2 = CausalBlock(channels, channels, kernel)
        self.res_conv = nn.Conv1d(in_channels, channels, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.block1(x) + self.mlp(time)[..., None]
        out: Tensor = self.block2(h) + self.res_conv(x)
        return out


class Attention(nn.Module):
    """Self-attention without positions; its inner width need not equal the channels."""

    def __init__(self, channels: int, inner: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(channels, inner, bias=False)
        self.to_k = nn.Linear(channels, inner, bias=False)
        self.to_v = nn.Linear(channels, inner, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, channels))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        query, key, value = (split_heads(project(x), self.heads) for project in (self.to_q, self.to_k, self.to_v))
        y = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        out: Tensor = self.to_out(y.transpose(1, 2).flatten(2))
        return out


class GELUProjection(nn.Module):
    """Linear, exact GELU."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.proj = nn.Linear(channels, hidden)

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.proj(x))


class FeedForward(nn.Module):
    """GELU projection, Linear. The latter is the sequence's third entry in the checkpoint."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.net = nn.Sequential(GELUProjection(channels, hidden), nn.Identity(), nn.Linear(hidden, channels))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.net(x)
        return out


class TransformerBlock(nn.Module):
    """Pre-norm attention and feed-forward, each with a residual. (B, T, C)."""

    def __init__(self, sizes: UNetSizes, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(sizes.channels, eps=LAYER_NORM_EPS)
        self.attn1 = Attention(sizes.channels, sizes.inner, heads)
        self.norm3 = nn.LayerNorm(sizes.channels, eps=LAYER_NORM_EPS)
        self.ff = FeedForward(sizes.channels, sizes.hidden)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = x + self.attn1(self.norm1(x), mask)
        out: Tensor = x + self.ff(self.norm3(x))
        return out


class Transformers(nn.ModuleList):
    """Transformer blocks one after the other. (B, C, T) -> (B, C, T)."""

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = x.transpose(1, 2)
        for block in self:
            x = block(x, mask)
        return x.transpose(1, 2)


class Stage(nn.ModuleList):
    """A residual block, its transformer blocks, and the convolution after them if the stage has one."""

    def __init__(self, sizes: UNetSizes, heads: int, in_channels: int, *, convolution: bool) -> None:
        blocks = Transformers(TransformerBlock(sizes, heads) for _ in range(sizes.blocks))
        super().__init__([ResidualBlock(in_channels, sizes.channels, sizes.time_channels, sizes.kernel), blocks])
        if convolution:
            self.append(CausalConv1d(sizes.channels, sizes.channels, sizes.kernel))

    def forward(self, x: Tensor, time: Tensor, mask: Tensor | None) -> Tensor:
        """Everything but the convolution: the skip connection starts before it. (B, C, T) -> (B, channels, T)."""
        residual, blocks = self[0], self[1]
        out: Tensor = blocks(residual(x, time), mask)
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

    def forward(self, x: Tensor, t: Tensor, *, streaming: bool) -> Tensor:
        """x (B, in_channels, T): noisy mel, mu, speaker, prompt mel; t (1) or (B). Returns (B, out_channels, T)."""
        mask = chunk_mask(x.shape[2], self.chunk, x.device) if streaming else None
        time = self.time_mlp(t)
        down, up = _stage(self.down_blocks), _stage(self.up_blocks)
        skip = down(x, time, mask)
        x = down[2](skip)
        for stage in self.mid_blocks:
            x = stage(x, time, mask)
        x = up[2](up(torch.cat((x, skip), dim=1), time, mask))
        out: Tensor = self.final_proj(self.final_block(x))
        return out


def _stage(blocks: nn.ModuleList) -> Stage:
    stage = blocks[0]
    if not isinstance(stage, Stage):
        raise TypeError(f"expected a Stage, found {type(stage).__name__}")
    return stage

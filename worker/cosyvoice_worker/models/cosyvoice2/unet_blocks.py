"""What the velocity estimator is built of: time embedding, causal convolution blocks, transformer blocks."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cosyvoice_worker.models.cosyvoice2.attention import split_heads

LAYER_NORM_EPS = 1e-5
TIME_SCALE = 1000.0
MAX_PERIOD = 10000.0


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

    def __init__(self, channels: int, inner: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(channels, eps=LAYER_NORM_EPS)
        self.attn1 = Attention(channels, inner, heads)
        self.norm3 = nn.LayerNorm(channels, eps=LAYER_NORM_EPS)
        self.ff = FeedForward(channels, hidden)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = x + self.attn1(self.norm1(x), mask)
        out: Tensor = x + self.ff(self.norm3(x))
        return out

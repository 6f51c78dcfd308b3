"""The flow's encoder: speech tokens at 25 Hz to hidden rows at 50 Hz (the mel's rate).

Conformer layers without convolution on the tokens, a look-ahead over the next three tokens, doubling, more layers.
Attribute names are the checkpoint's (`flow.pt`, prefix `encoder.`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cosyvoice_worker.models.cosyvoice2.attention import RelativeSelfAttention, chunk_mask, relative_encoding

LAYER_NORM_EPS = 1e-12
UPSAMPLE_RATE = 2


@dataclass(frozen=True, slots=True)
class EncoderSizes:
    """Widths and depths of the encoder, as the checkpoint's tensors tell them."""

    input_channels: int
    channels: int
    heads: int
    hidden: int  # of the feed-forward layers
    layers: int
    up_layers: int
    lookahead: int  # tokens after the current one that the look-ahead sees
    lookahead_kernel: int
    up_kernel: int


class LinearEmbedding(nn.Module):
    """Linear, LayerNorm, times sqrt(channels): the positions' sinusoids themselves are never scaled."""

    def __init__(self, input_channels: int, channels: int) -> None:
        super().__init__()
        self.out = nn.Sequential(nn.Linear(input_channels, channels), nn.LayerNorm(channels, eps=1e-5))
        self.scale = math.sqrt(channels)

    def forward(self, x: Tensor) -> Tensor:
        """(1, T, input_channels) -> (1, T, channels)."""
        embedded: Tensor = self.out(x)
        return embedded * self.scale


class PreLookahead(nn.Module):
    """Two convolutions that let a row see the `lookahead` rows after it; a residual around both."""

    def __init__(self, channels: int, lookahead: int, kernel: int) -> None:
        super().__init__()
        self.lookahead = lookahead
        self.left = kernel - 1
        self.conv1 = nn.Conv1d(channels, channels, lookahead + 1)
        self.conv2 = nn.Conv1d(channels, channels, kernel)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """x (1, T, C); `context` (1, lookahead, C) are the rows after x, None at the end of the speech."""
        rows = F.pad(x, (0, 0, 0, self.lookahead)) if context is None else torch.cat((x, context), dim=1)
        y = F.leaky_relu(self.conv1(rows.transpose(1, 2)))  # (1, C, T)
        y = self.conv2(F.pad(y, (self.left, 0)))
        out: Tensor = x + y.transpose(1, 2)
        return out


class Upsample(nn.Module):
    """Each row twice, then a causal convolution. (1, C, T) -> (1, C, 2T)."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.left = kernel - 1
        self.conv = nn.Conv1d(channels, channels, kernel)

    def forward(self, x: Tensor) -> Tensor:
        doubled = x.repeat_interleave(UPSAMPLE_RATE, dim=2)
        out: Tensor = self.conv(F.pad(doubled, (self.left, 0)))
        return out


class FeedForward(nn.Module):
    """Linear, SiLU, Linear."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(channels, hidden)
        self.w_2 = nn.Linear(hidden, channels)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.w_2(F.silu(self.w_1(x)))
        return out


class ConformerLayer(nn.Module):
    """Pre-norm attention and feed-forward, each with a residual."""

    def __init__(self, channels: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.self_attn = RelativeSelfAttention(channels, heads)
        self.feed_forward = FeedForward(channels, hidden)
        self.norm_mha = nn.LayerNorm(channels, eps=LAYER_NORM_EPS)
        self.norm_ff = nn.LayerNorm(channels, eps=LAYER_NORM_EPS)

    def forward(self, x: Tensor, encoding: Tensor, mask: Tensor | None, on_step: Callable[[], None]) -> Tensor:
        x = x + self.self_attn(self.norm_mha(x), encoding, mask, on_step)
        out: Tensor = x + self.feed_forward(self.norm_ff(x))
        return out


class UpsampleConformerEncoder(nn.Module):
    """Token embeddings to rows at the mel's rate."""

    def __init__(self, sizes: EncoderSizes, chunk: int) -> None:
        """`chunk`: tokens a streaming query sees at once (and twice as many rows after the doubling)."""
        super().__init__()
        self.channels = sizes.channels
        self.chunk = chunk
        self.embed = LinearEmbedding(sizes.input_channels, sizes.channels)
        self.pre_lookahead_layer = PreLookahead(sizes.channels, sizes.lookahead, sizes.lookahead_kernel)
        self.encoders = _layers(sizes, sizes.layers)
        self.up_layer = Upsample(sizes.channels, sizes.up_kernel)
        self.up_embed = LinearEmbedding(sizes.channels, sizes.channels)
        self.up_encoders = _layers(sizes, sizes.up_layers)
        self.after_norm = nn.LayerNorm(sizes.channels, eps=1e-5)

    def forward(self, x: Tensor, context: Tensor | None, *, streaming: bool, on_step: Callable[[], None]) -> Tensor:
        """x (1, T, input_channels) and the rows after it, or None at the end. Returns (1, 2T, channels).

        `on_step` is called before each part of a layer.
        """
        x = self.embed(x)
        x = self.pre_lookahead_layer(x, None if context is None else self.embed(context))
        x = self._run(self.encoders, x, self.chunk if streaming else None, on_step)
        x = self.up_layer(x.transpose(1, 2)).transpose(1, 2)  # (1, 2T, C)
        x = self.up_embed(x)
        x = self._run(self.up_encoders, x, self.chunk * UPSAMPLE_RATE if streaming else None, on_step)
        out: Tensor = self.after_norm(x)
        return out

    def _run(self, layers: nn.ModuleList, x: Tensor, chunk: int | None, on_step: Callable[[], None]) -> Tensor:
        length = x.shape[1]
        encoding = relative_encoding(length, self.channels, x.device)
        mask = None if chunk is None else chunk_mask(length, chunk, x.device)
        for layer in layers:
            x = layer(x, encoding, mask, on_step)
        return x


def _layers(sizes: EncoderSizes, count: int) -> nn.ModuleList:
    return nn.ModuleList(ConformerLayer(sizes.channels, sizes.heads, sizes.hidden) for _ in range(count))

"""Self-attention with relative positions (Transformer-XL), as the flow's text-to-mel encoder uses it.

A score is content plus position: `((q + u) k^T + (q + v) p^T) / sqrt(d)`, where p encodes the distance i - j.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Queries whose position scores are in memory at once: for a minute of speech all would take gigabytes.
QUERY_BLOCK = 256


def chunk_mask(length: int, chunk: int, device: torch.device) -> Tensor:
    """What a streaming query sees: its own chunk of `chunk` rows and all before. (length, length), True = visible."""
    position = torch.arange(length, device=device)
    chunk_end = (position // chunk + 1) * chunk
    return position < chunk_end[:, None]


def relative_encoding(length: int, channels: int, device: torch.device) -> Tensor:
    """Sinusoids of the distances length-1 … 0 … -(length-1), sine and cosine in turn. (2 * length - 1, channels)."""
    distance = torch.arange(length - 1, -length, -1, device=device, dtype=torch.float32)
    frequency = torch.exp(torch.arange(0, channels, 2, device=device).float() * -(math.log(10000.0) / channels))
    angle = distance[:, None] * frequency
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


def align_distances(scores: Tensor) -> Tensor:
    """Turn the scores of R queries per distance (…, R, K+R-1) into scores per key (…, R, K), without a copy.

    Columns go from the last query's distance to key 0 down to the first query's to key K-1. Key j of query r then is in
    column R-1-r+j: each row starts one column further left. Reading the contiguous rows with a stride one shorter than
    their length does exactly that.
    """
    scores = scores.contiguous()
    *outer, queries, width = scores.shape
    strides = (*scores.stride()[:-2], width - 1, 1)
    return scores.as_strided((*outer, queries, width - queries + 1), strides, scores.storage_offset() + queries - 1)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, T, C) -> (B, heads, T, C / heads), a view."""
    batch, length, channels = x.shape
    return x.view(batch, length, heads, channels // heads).transpose(1, 2)


class RelativeSelfAttention(nn.Module):
    """Multi-head self-attention with a learnt content bias u and position bias v per head."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.linear_q = nn.Linear(channels, channels)
        self.linear_k = nn.Linear(channels, channels)
        self.linear_v = nn.Linear(channels, channels)
        self.linear_out = nn.Linear(channels, channels)
        self.linear_pos = nn.Linear(channels, channels, bias=False)
        self.pos_bias_u = nn.Parameter(torch.empty(heads, channels // heads))
        self.pos_bias_v = nn.Parameter(torch.empty(heads, channels // heads))

    def forward(self, x: Tensor, encoding: Tensor, mask: Tensor | None, on_step: Callable[[], None]) -> Tensor:
        """x (1, T, C), encoding (2T-1, C) of `relative_encoding`, mask (T, T) or None for all. Returns (1, T, C).

        `on_step` is called before each block of queries: minutes of speech take a layer seconds.
        """
        query = split_heads(self.linear_q(x), self.heads)  # (1, H, T, d)
        key = split_heads(self.linear_k(x), self.heads)
        value = split_heads(self.linear_v(x), self.heads)
        position = split_heads(self.linear_pos(encoding[None]), self.heads)  # (1, H, 2T-1, d)

        by_content = query + self.pos_bias_u.to(query.dtype)[:, None]
        by_position = (query + self.pos_bias_v.to(query.dtype)[:, None]) * query.shape[-1] ** -0.5
        mixed = torch.empty_like(by_content)
        length = x.shape[1]
        for start in range(0, length, QUERY_BLOCK):
            on_step()
            rows = slice(start, min(start + QUERY_BLOCK, length))
            distances = position[:, :, length - rows.stop : 2 * length - 1 - start]
            bias = align_distances(by_position[:, :, rows] @ distances.transpose(-2, -1))  # (1, H, rows, T)
            if mask is not None:
                bias = bias.masked_fill(~mask[rows], -math.inf)
            mixed[:, :, rows] = F.scaled_dot_product_attention(by_content[:, :, rows], key, value, attn_mask=bias)
        out: Tensor = self.linear_out(mixed.transpose(1, 2).flatten(2))
        return out

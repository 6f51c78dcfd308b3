"""Qwen2, the language model's backbone, for one sequence at a time (arXiv:2407.10671).

Pre-norm layers with RMSNorm, grouped-query attention, rotary positions and a SwiGLU. Without a batch: rows are (T, C).
Attribute names are the checkpoint's (`llm.pt`, prefix `llm.model.model.`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cosyvoice_worker.models.cosyvoice2.config import BackboneConfig


@dataclass(frozen=True, slots=True)
class Qwen2Sizes:
    """Widths and depth, as the checkpoint's tensors tell them."""

    vocabulary: int
    channels: int
    layers: int
    hidden: int  # of the feed-forward layers
    query: int  # all query heads together
    key_value: int  # all key (or value) heads together


class Cache:
    """Keys and values of the rows so far, and the rotary tables: the state of one sequence, of fixed capacity."""

    def __init__(self, layers: int, heads: int, capacity: int, rotary: Tensor, dtype: torch.dtype) -> None:
        """`rotary` (d / 2): the rotation per position of each pair, in radians."""
        positions = torch.arange(capacity, device=rotary.device, dtype=torch.float32)
        angle = torch.outer(positions, rotary)  # (capacity, d / 2)
        self.cos, self.sin = angle.cos().to(dtype), angle.sin().to(dtype)
        shape = (layers, heads, capacity, 2 * rotary.numel())
        self.keys = torch.empty(shape, dtype=dtype, device=rotary.device)
        self.values = torch.empty(shape, dtype=dtype, device=rotary.device)
        self.length = 0

    @property
    def capacity(self) -> int:
        return self.keys.shape[2]


class Linear(nn.Linear):
    """A linear layer that treats a single row as the matrix-vector product it is: some builds' GEMM is slow at it."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the name of nn.Linear
        if input.shape[0] != 1:
            return super().forward(input)
        bias = self._parameters["bias"]
        if bias is None:
            return torch.mv(self.weight, input[0])[None]
        return torch.addmv(bias, self.weight, input[0])[None]


class Attention(nn.Module):
    """Causal self-attention in which groups of query heads share a key and value head."""

    def __init__(self, sizes: Qwen2Sizes, config: BackboneConfig) -> None:
        super().__init__()
        self.heads = config.key_value_heads
        self.q_proj = Linear(sizes.channels, sizes.query)
        self.k_proj = Linear(sizes.channels, sizes.key_value)
        self.v_proj = Linear(sizes.channels, sizes.key_value)
        self.o_proj = Linear(sizes.query, sizes.channels, bias=False)

    def forward(self, x: Tensor, cache: Cache, layer: int) -> Tensor:
        """The next T rows of the sequence, (T, C) -> (T, C); their keys and values enter the cache."""
        rows, start, heads = x.shape[0], cache.length, self.heads
        end = start + rows
        head_dim = cache.keys.shape[3]
        cos, sin = cache.cos[start:end], cache.sin[start:end]
        query = self.q_proj(x).view(rows, heads, -1, head_dim).permute(1, 2, 0, 3)  # (H, G, T, d)
        key = self.k_proj(x).view(rows, heads, head_dim).transpose(0, 1)  # (H, T, d)
        cache.keys[layer, :, start:end] = rotate(key, cos, sin)
        cache.values[layer, :, start:end] = self.v_proj(x).view(rows, heads, head_dim).transpose(0, 1)
        keys, values = cache.keys[layer, :, :end], cache.values[layer, :, :end]
        query = rotate(query, cos, sin).flatten(1, 2)  # (H, G * T, d): the groups are further queries of the same keys
        y = F.scaled_dot_product_attention(query, keys, values, attn_mask=_causal(query, rows, start))
        y = y.view(heads, -1, rows, head_dim).permute(2, 0, 1, 3)  # (T, H, G, d)
        out: Tensor = self.o_proj(y.reshape(rows, -1))
        return out


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj = Linear(channels, hidden, bias=False)
        self.up_proj = Linear(channels, hidden, bias=False)
        self.down_proj = Linear(hidden, channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Layer(nn.Module):
    """Attention and feed-forward, each with a norm before it and a residual around both."""

    def __init__(self, sizes: Qwen2Sizes, config: BackboneConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(sizes.channels, eps=config.rms_norm_eps)
        self.self_attn = Attention(sizes, config)
        self.post_attention_layernorm = nn.RMSNorm(sizes.channels, eps=config.rms_norm_eps)
        self.mlp = FeedForward(sizes.channels, sizes.hidden)

    def forward(self, x: Tensor, cache: Cache, layer: int) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cache, layer)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class Qwen2(nn.Module):
    """Text embedding and the layers; what to make of the hidden rows is the caller's."""

    rotary: Tensor

    def __init__(self, sizes: Qwen2Sizes, config: BackboneConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(sizes.vocabulary, sizes.channels)
        self.layers = nn.ModuleList(Layer(sizes, config) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.channels, eps=config.rms_norm_eps)
        self.heads = config.key_value_heads
        head_dim = sizes.query // config.heads
        exponent = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
        self.register_buffer("rotary", config.rope_theta**-exponent, persistent=False)

    def new_cache(self, capacity: int) -> Cache:
        """The state of a sequence of at most `capacity` rows."""
        return Cache(len(self.layers), self.heads, capacity, self.rotary, self.norm.weight.dtype)

    def forward(self, rows: Tensor, cache: Cache) -> Tensor:
        """The next rows of the sequence: embeddings (T, C) -> hidden rows (T, C) after the final norm.

        Raises ValueError beyond the cache's capacity.
        """
        if cache.length + rows.shape[0] > cache.capacity:
            raise ValueError(f"{cache.length} + {rows.shape[0]} rows are more than the cache's {cache.capacity}")
        for index, layer in enumerate(self.layers):
            rows = layer(rows, cache, index)
        cache.length += rows.shape[0]
        out: Tensor = self.norm(rows)
        return out


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions: x (…, T, d), of which column i and column i + d / 2 are a pair; cos and sin (T, d / 2)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def _causal(query: Tensor, rows: int, start: int) -> Tensor | None:
    """What each of the (G * T) queries may see of the start + T keys; None where a single row sees all."""
    if rows == 1:
        return None
    mask = torch.ones(rows, start + rows, dtype=torch.bool, device=query.device).tril(diagonal=start)
    return mask.repeat(query.shape[1] // rows, 1)

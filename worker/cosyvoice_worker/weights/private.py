"""How much of a model's tensors will be in memory of the process' own, and not in the pages of their files."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from cosyvoice_worker.weights.fold import STYLES

_DIRECTIONS = tuple(direction for _, direction in STYLES)


def cast_bytes(tensors: Mapping[str, Tensor], dtype: torch.dtype) -> int:
    """Bytes of the copies that casting to `dtype` makes; tensors that share their memory are cast once."""
    cast = {tensor.data_ptr(): tensor.numel() for tensor in tensors.values() if tensor.dtype != dtype}
    return sum(cast.values()) * dtype.itemsize


def folded_bytes(tensors: Mapping[str, Tensor]) -> int:
    """Bytes of the weights that folding makes of directions and lengths."""
    directions = (tensor for name, tensor in tensors.items() if name.endswith(_DIRECTIONS))
    return sum(tensor.numel() * tensor.element_size() for tensor in directions)

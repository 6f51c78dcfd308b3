"""Folds weight norm: a convolution stored as direction and length becomes one stored as its weight.

The fold costs once, in memory of its own, what each inference would pay again: w = g * v / ||v||, the norm taken over
all dimensions but the first. (For transposed convolutions the first dimension is the input's.)
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from cosyvoice_worker.outcome import Phase, Reason, fail

# How PyTorch names length and direction: since 2.0, and before.
STYLES = (
    (".parametrizations.weight.original0", ".parametrizations.weight.original1"),
    (".weight_g", ".weight_v"),
)


def fold_weight_norm(tensors: Mapping[str, Tensor], file: str) -> dict[str, Tensor]:
    """The same tensors with every pair of either style replaced by `<name>.weight`; the order is kept.

    Raises WorkerError: MissingTensor for half a pair, ShapeMismatch for halves that do not fit.
    """
    folded: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        pair = _pair(name)
        if pair is None:
            folded[name] = tensor
            continue
        length, direction = pair
        for half in pair:
            if half not in tensors:
                message = f"{file} lacks {half}, the other half of {name}"
                raise fail(Reason.MISSING_TENSOR, Phase.BUILD, message, file=file, tensor=half)
        if name == direction:
            folded[f"{_convolution(name)}.weight"] = _fold(file, length, tensors[length], tensors[direction])
    return folded


def strip_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The same tensors without `prefix` in their names, as checkpoints of a training wrapper carry it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}


def _pair(name: str) -> tuple[str, str] | None:
    for length, direction in STYLES:
        for suffix in (length, direction):
            if name.endswith(suffix):
                stem = name.removesuffix(suffix)
                return stem + length, stem + direction
    return None


def _convolution(name: str) -> str:
    for style in STYLES:
        for suffix in style:
            name = name.removesuffix(suffix)
    return name


def _fold(file: str, name: str, length: Tensor, direction: Tensor) -> Tensor:
    expected = [direction.shape[0], *[1] * (direction.dim() - 1)]
    if list(length.shape) != expected:
        message = f"{file}: {name} has the shape {list(length.shape)}, its direction needs {expected}"
        raise fail(
            Reason.SHAPE_MISMATCH,
            Phase.BUILD,
            message,
            file=file,
            tensor=name,
            expected=expected,
            actual=list(length.shape),
        )
    norm = torch.linalg.vector_norm(direction, dim=list(range(1, direction.dim())), keepdim=True)
    weight: Tensor = direction * (length / norm)
    return weight

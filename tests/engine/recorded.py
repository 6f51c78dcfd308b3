"""Names and inputs of the recorded results.

Tests are parametrised by the names found in the file, so that an array nobody computes is a failure, not an oversight.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dev.models import streams

GOLDEN_FILE = Path(__file__).parent / "goldens" / "golden.npz"


def names(prefix: str) -> list[str]:
    """Every recorded array whose name starts with `prefix`."""
    with np.load(GOLDEN_FILE) as arrays:
        found = [name for name in arrays.files if name.startswith(prefix)]
    if not found:
        raise LookupError(f"nothing recorded under {prefix}")
    return found


def token_ids(tag: str, count: int) -> Tensor:
    """(1, count) speech tokens of the tag's stream."""
    return torch.from_numpy((streams.raw(tag, count) % 6561).astype(np.int64))[None]


def normal(tag: str, shape: tuple[int, ...], scale: float = 1.0) -> Tensor:
    """Gaussian values of the tag's stream, float32."""
    return torch.from_numpy((scale * streams.normal(tag, shape)).astype(np.float32))


class RecordedNoise:
    """The noise that the recording drew for its k-th call of the vocoder under `where`."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._calls = 0

    def __call__(self, samples: int, harmonics: int) -> Tensor:
        tag = f"golden/v2/{self._where}/sine{self._calls}"
        self._calls += 1
        return normal(tag, (1, samples, harmonics))


def outputs(modules: dict[str, nn.Module], call: Callable[[], object]) -> dict[str, list[Tensor]]:
    """What each module returned, call by call, while `call` ran."""
    seen: dict[str, list[Tensor]] = {name: [] for name in modules}

    def hook(name: str) -> Callable[[nn.Module, object, Tensor], None]:
        return lambda _module, _inputs, output: seen[name].append(output.clone())

    handles = [module.register_forward_hook(hook(name)) for name, module in modules.items()]
    try:
        call()
    finally:
        for handle in handles:
            handle.remove()
    return seen


def exact(array: npt.NDArray[np.generic]) -> bool:
    """Whether the array holds ids, lengths or flags, which allow no tolerance."""
    return array.dtype.kind in "iub"

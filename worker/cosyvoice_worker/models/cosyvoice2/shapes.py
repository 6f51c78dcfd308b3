"""Sizes from tensor shapes: the checkpoint tells how wide and deep its modules are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from cosyvoice_worker.outcome import Phase, Reason, fail


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes of one file's tensors. Raises WorkerError for a tensor that is missing or has another rank."""

    file: str
    tensors: Mapping[str, Tensor]

    def of(self, name: str, rank: int) -> tuple[int, ...]:
        tensor = self.tensors.get(name)
        if tensor is None:
            message = f"{self.file} lacks the tensor {name}: is it of the same model as the directory's yaml?"
            raise fail(Reason.MISSING_TENSOR, Phase.BUILD, message, file=self.file, tensor=name)
        if tensor.dim() != rank:
            expected, actual = f"{rank} dimensions", str(list(tensor.shape))
            message = f"{self.file}: {name} should have {expected}, its shape is {actual}"
            raise fail(
                Reason.SHAPE_MISMATCH,
                Phase.BUILD,
                message,
                file=self.file,
                tensor=name,
                expected=expected,
                actual=actual,
            )
        return tuple(tensor.shape)

    def count(self, prefix: str, step: int = 1) -> int:
        """How many consecutive entries `prefix`0., `prefix`<step>., … there are."""
        pattern = re.compile(re.escape(prefix) + r"(\d+)\.")
        found = {int(match.group(1)) for name in self.tensors if (match := pattern.match(name))}
        count = 0
        while count * step in found:
            count += 1
        return count

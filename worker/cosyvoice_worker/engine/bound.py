"""The bound on what an engine may take for itself, from its first map on, and how it changes while there are two.

Only on the CPU: with CUDA the driver's own mappings are counted too, and are many times what is used.
"""

from __future__ import annotations

from cosyvoice_worker.engine.limits import LEAST_BUDGET_BYTES, fixed_budget, memory_budget
from cosyvoice_worker.weights import memory


class MemoryBound:
    """`weights` are the bytes that will be mapped; `most` is what a second engine may hold in all (None: the only one).

    Raises WorkerError (InvalidConfig) where the environment's budget is no number.
    """

    def __init__(self, weights: int, most: int | None) -> None:
        self._weights = weights
        self._most = most
        self._base = 0

    def while_mapping(self) -> None:
        """Until they are protected the mapped files count in full, whatever else the load takes comes on top."""
        memory.limit_growth(self._weights + self._growth())

    def once_built(self) -> None:
        """The weights are protected and count for nothing."""
        self._base = memory.data_bytes()
        memory.limit_growth(self._growth())

    def change(self, growth: int | None) -> None:
        """Allow `growth` more bytes from now on; None: this is the only engine now, with all that it then may have."""
        if growth is not None:
            memory.limit_growth(growth)
            return
        fixed = fixed_budget()
        if fixed is None:
            memory.limit_growth(memory_budget(self._weights))
        else:
            memory.limit_data(self._base + fixed)

    def _growth(self) -> int:
        alone = memory_budget(self._weights)
        if self._most is None:
            return alone
        return min(alone, max(LEAST_BUDGET_BYTES, self._most - memory.private_bytes()))

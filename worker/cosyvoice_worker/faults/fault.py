"""What a fault is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cosyvoice_worker.faults.copy import Copy
from cosyvoice_worker.outcome import Phase, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What was done to a copy: the file, the tensor if it is one of the weights, and `what` in words.

    `needs` is what has to be set for the fault to be found at all, if anything has to.
    """

    file: str
    what: str
    tensor: str | None = None
    needs: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One way for a model directory to be bad. `phase` and `reason` are those of the worker that finds it."""

    name: str
    summary: str
    phase: Phase
    reason: Reason
    damage: Callable[[Copy], Damage]

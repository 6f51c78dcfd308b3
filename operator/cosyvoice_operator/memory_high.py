"""Whether a value of spec.worker.memoryHigh can work. Pure.

Above memory.high the kernel takes pages back and makes whoever asks for more wait. What a worker holds for itself can
not be taken back (there is no swap), so a value below that is an outage that looks like a slow model. What is counted
here is what every worker holds at least, whatever its model: the worker adds what its weights make of it
(cosyvoice_worker.engine.working_set), and refuses to load below that.
"""

from __future__ import annotations

from dataclasses import dataclass

from cosyvoice_operator.api_spec import Engine, Recycle
from cosyvoice_operator.errors import InvalidSpecError

FIELD = "spec.worker.memoryHigh"

MIB = 1024 * 1024

# Private memory (RssAnon) of the processes with the smallest model there is, as measured: docs/memory-high.md.
FRONT_BYTES = 32 * MIB
PYTORCH_BYTES = 160 * MIB
SPEECH_BYTES = 96 * MIB
# To a GPU the weights travel through three pinned buffers of 32 MiB.
PINNED_BYTES = 96 * MIB
# 16 MiB over the value already cost 13 s of waiting.
HEADROOM_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a worker holds at least. `engines` is how many there are at a time; `casts`: each copies its weights."""

    device: str
    engines: int
    casts: bool

    @property
    def engine(self) -> int:
        """Bytes of one engine, without what depends on the model."""
        return PYTORCH_BYTES + SPEECH_BYTES + (PINNED_BYTES if self.device == "cuda" else 0)

    @property
    def total(self) -> int:
        """Bytes of the container, headroom included."""
        return FRONT_BYTES + self.engines * self.engine + HEADROOM_BYTES


def needs(engine: Engine, device: str, *, swaps: bool) -> Needs:
    """Of workers on `device`. A swap in place and a fresh engine (`recycle`) both mean two engines for a while."""
    two = swaps or engine.recycle != Recycle()
    return Needs(device=device, engines=2 if two else 1, casts=device == "cpu" and engine.dtype == "bfloat16")


def check(high: int, limit: int, needed: Needs) -> None:
    """Raise InvalidSpecError where `high` bytes are no use: not below the `limit`, or below what is needed."""
    if high >= limit:
        message = (
            f"{_mib(high)} is not below the worker's memory limit of {_mib(limit)}: the kernel would end the worker "
            "before it slowed it down; lower it, or raise spec.worker.resources.limits.memory"
        )
        raise InvalidSpecError(FIELD, message)
    if high < needed.total:
        raise InvalidSpecError(FIELD, f"{_mib(high)} is below what a worker holds at least: {_arithmetic(needed)}")


def _arithmetic(needed: Needs) -> str:
    pinned = f", pinned buffers {_mib(PINNED_BYTES)}" if needed.device == "cuda" else ""
    engines = "1 engine" if needed.engines == 1 else f"{needed.engines} engines (of two versions, while one takes over)"
    weights = (
        "each engine's copy of the language model in bfloat16 comes on top, once the weights are staged"
        if needed.casts
        else "the weights are not counted, as their pages are shared and charged to the staging"
    )
    return (
        f"{_mib(FRONT_BYTES)} for the front, {engines} of {_mib(needed.engine)} (PyTorch {_mib(PYTORCH_BYTES)}, speech "
        f"{_mib(SPEECH_BYTES)}{pinned}) and {_mib(HEADROOM_BYTES)} of headroom are {_mib(needed.total)}; {weights}. "
        "Below that the worker would not end but wait for memory for ever: raise it, or leave it out"
    )


def _mib(count: int) -> str:
    return f"{count / MIB:g} MiB" if count % MIB == 0 else f"{count / MIB:.1f} MiB"

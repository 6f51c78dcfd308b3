"""Whether memory.high leaves room for the model, before a byte of it is private. Pure.

Above memory.high an engine would not fail but wait for memory for ever, until the time to load is over and nobody knows
why. The operator has refused what is too low for any model (cosyvoice_operator.memory_high has the same figures).
"""

from __future__ import annotations

from cosyvoice_worker.outcome import Phase, Reason, fail

MIB = 1024 * 1024

FRONT_BYTES = 32 * MIB
PYTORCH_BYTES = 160 * MIB
SPEECH_BYTES = 96 * MIB
HEADROOM_BYTES = 64 * MIB


def check(memory_high: int | None, model: int) -> None:
    """Raise WorkerError (InvalidConfig) where `memory_high` (None: not asked for) is too low.

    `model` is what the model will hold for itself; all are bytes.
    """
    parts = {
        "the front": FRONT_BYTES,
        "PyTorch": PYTORCH_BYTES,
        "speech": SPEECH_BYTES,
        "what the model does not share with its files (the folded vocoder, casts)": model,
        "headroom": HEADROOM_BYTES,
    }
    needed = sum(parts.values())
    if memory_high is None or memory_high >= needed:
        return
    arithmetic = ", ".join(f"{count / MIB:.1f} MiB for {what}" for what, count in parts.items())
    message = (
        f"memory.high at {memory_high / MIB:.1f} MiB is below what this model needs: {arithmetic}, together "
        f"{needed / MIB:.1f} MiB: raise spec.worker.memoryHigh to at least {-(-needed // MIB)}Mi"
    )
    raise fail(
        Reason.INVALID_CONFIG, Phase.MAP, message, expected=f"at least {needed} bytes", actual=f"{memory_high} bytes"
    )

"""What a voice, or the recording it is made of, is refused with.

VoiceError              a pack, a recording or a model file that cannot be used
└── UnknownVoiceError   no pack has the name that was asked for
"""

from __future__ import annotations

from collections.abc import Sequence

from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError

MAX_NAMES_TOLD = 20


class VoiceError(WorkerError):
    """A voice pack, a recording or one of the model's ONNX files cannot be used; the outcome says which and why."""


class UnknownVoiceError(VoiceError):
    """No pack has this name. `outcome.expected` holds the names there are."""


def refuse(
    what: str,
    *,
    file: str | None = None,
    tensor: str | None = None,
    expected: object = None,
    actual: object = None,
    reason: Reason = Reason.CORRUPT_FILE,
) -> VoiceError:
    """A VoiceError whose message reads `file: tensor: what: expected …, got …`."""
    where = "".join(f"{part}: " for part in (file, tensor) if part is not None)
    told = ", ".join(
        part
        for part in (
            None if expected is None else f"expected {expected}",
            None if actual is None else f"got {actual}",
        )
        if part is not None
    )
    return VoiceError(
        Outcome(
            reason=reason,
            phase=Phase.SERVE,
            message=f"{where}{what}" + (f": {told}" if told else ""),
            file=file,
            tensor=tensor,
            expected=None if expected is None else str(expected),
            actual=None if actual is None else str(actual),
        )
    )


def unknown_voice(name: str, available: Sequence[str]) -> UnknownVoiceError:
    """The error for a name that no pack has, with the names that exist."""
    known = ", ".join(available[:MAX_NAMES_TOLD]) or "none"
    if len(available) > MAX_NAMES_TOLD:
        known += f" and {len(available) - MAX_NAMES_TOLD} more"
    return UnknownVoiceError(
        Outcome(
            reason=Reason.INVALID_CONFIG,
            phase=Phase.SERVE,
            message=f"there is no voice {name[:63]!r}; there are: {known}",
            expected=known,
            actual=name[:63],
        )
    )

"""What a request is refused with.

RequestError    the request cannot be spoken as it is; its sender has to change it
"""

from __future__ import annotations

from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError


class RequestError(WorkerError):
    """The request cannot be spoken as it is; the message says what to change. HTTP status 400."""

    def __init__(self, message: str, *, expected: object = None, actual: object = None) -> None:
        super().__init__(
            Outcome(
                reason=Reason.INVALID_CONFIG,
                phase=Phase.SERVE,
                message=message,
                expected=None if expected is None else str(expected),
                actual=None if actual is None else str(actual),
            )
        )

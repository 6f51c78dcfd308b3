"""How a command ends: its outcome is told to the kubelet and to the log, once, and becomes the exit code.

And how it ends early: by a signal, which becomes an exception, so that nothing half done is left.
"""

from __future__ import annotations

import logging
import signal
import sys
from types import FrameType

from cosyvoice_worker.outcome import Outcome, write_termination_message


def conclude(outcome: Outcome, termination_log: str | None) -> int:
    """Tell the kubelet and the log how this container ends; the exit code. Without a termination log only the log."""
    if termination_log is not None:
        write_termination_message(outcome, termination_log)
    level = logging.INFO if outcome.exit_code == 0 else logging.ERROR
    logging.getLogger("cosyvoice_worker").log(level, outcome.message, extra=outcome.log_fields())
    return outcome.exit_code


def end_on_signals() -> None:
    """From now on SIGTERM and SIGINT end this process as a shell reports it (143 for SIGTERM), through every `finally`.

    Without a handler the kernel would not deliver the signal at all to a process that has the id 1 in its container.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    for other in (signal.SIGTERM, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)

"""How a command ends: its outcome is told to the kubelet and to the log, once, and becomes the exit code."""

from __future__ import annotations

import logging

from cosyvoice_worker.outcome import Outcome, write_termination_message


def conclude(outcome: Outcome, termination_log: str | None) -> int:
    """Tell the kubelet and the log how this container ends; the exit code. Without a termination log only the log."""
    if termination_log is not None:
        write_termination_message(outcome, termination_log)
    level = logging.INFO if outcome.exit_code == 0 else logging.ERROR
    logging.getLogger("cosyvoice_worker").log(level, outcome.message, extra=outcome.log_fields())
    return outcome.exit_code

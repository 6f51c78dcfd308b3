"""What all commands share: how one is run, and how its end is told."""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING, Protocol

from cosyvoice_worker.outcome import Outcome, WorkerError, write_termination_message

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


class Command(Protocol):
    """A module of this package."""

    def add_parser(self, subparsers: Subparsers) -> None: ...
    def run(self, args: argparse.Namespace) -> int: ...


def run(command: Command, args: argparse.Namespace) -> int:
    """Run `command`. A WorkerError becomes the termination message, one structured log line and the exit code."""
    try:
        return command.run(args)
    except WorkerError as error:
        return conclude(error.outcome, getattr(args, "termination_log", None))


def conclude(outcome: Outcome, termination_log: str | None) -> int:
    """Tell the kubelet and the log how this container ends; the exit code. Without a termination log only the log."""
    if termination_log is not None:
        write_termination_message(outcome, termination_log)
    level = logging.INFO if outcome.exit_code == 0 else logging.ERROR
    logging.getLogger("cosyvoice_worker").log(level, outcome.message, extra=outcome.log_fields())
    return outcome.exit_code

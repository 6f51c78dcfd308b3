"""What all commands share: their form, and how one is run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Protocol

from cosyvoice_worker.ending import conclude
from cosyvoice_worker.outcome import WorkerError

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

"""`cosyvoice-worker stage`: the pod's init container. Copies the weights into tmpfs and says what it did."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from cosyvoice_worker import documents, logs
from cosyvoice_worker.ending import conclude
from cosyvoice_worker.names import CONFIG_PATH, SOURCE_ROOT, TERMINATION_LOG, WEIGHTS_ROOT
from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError
from cosyvoice_worker.settings import Settings, parse_settings, read_document
from cosyvoice_worker.staging.pointer import Staged
from cosyvoice_worker.staging.stage import stage

if TYPE_CHECKING:
    from cosyvoice_worker.commands.base import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("stage", help="copy the weights into tmpfs, verified", description=__doc__)
    parser.add_argument("--config", default=CONFIG_PATH, metavar="FILE", help="model.json (default %(default)s)")
    parser.add_argument("--root", default=WEIGHTS_ROOT, metavar="DIR", help="the tmpfs (default %(default)s)")
    parser.add_argument("--termination-log", default=TERMINATION_LOG, metavar="FILE", help="default %(default)s")


def run(args: argparse.Namespace) -> int:
    """Stage; 0 with the reason Staged in the termination message, or raise WorkerError."""
    started = time.monotonic()
    logs.configure("stage")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    try:
        config = documents.current(args.config)
        document = read_document(config, Phase.STAGE)
        settings = parse_settings(document, Phase.STAGE, name=config)
        logs.configure("stage", model=settings.model, version=settings.version, revision=settings.revision)
        staged = stage(settings, document, boundary_of(settings.source.path), Path(args.root))
    except WorkerError as error:
        raise WorkerError(replace(error.outcome, elapsed_seconds=time.monotonic() - started)) from error
    return conclude(_success(settings, staged), args.termination_log)


def boundary_of(path: str) -> Path:
    """Where symbolic links of the model directory may lead: the whole mounted claim, or the directory itself."""
    return Path(SOURCE_ROOT) if Path(path).is_relative_to(SOURCE_ROOT) else Path(path)


def _success(settings: Settings, staged: Staged) -> Outcome:
    return Outcome(
        reason=Reason.STAGED,
        phase=Phase.STAGE,
        message=f"{staged.files} files of {settings.source.uri} staged",
        elapsed_seconds=staged.seconds,
        digest=staged.digest,
        bytes=staged.bytes,
    )


def _interrupt(number: int, _frame: FrameType | None) -> None:
    """End as a shell reports it (143 for SIGTERM), through every `finally`, so that no partial copy stays.

    Without a handler the kernel would not deliver the signal at all: in its container this process has the id 1.
    """
    for other in (signal.SIGTERM, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)

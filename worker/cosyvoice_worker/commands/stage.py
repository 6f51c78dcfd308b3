"""`cosyvoice-worker stage`: copies the weights into tmpfs and says what it did: the pod's init container.

With `--follow` it is the sidecar that stages further versions as they are ordered, until it is told to end.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cosyvoice_worker import documents, logs
from cosyvoice_worker.ending import conclude, end_on_signals
from cosyvoice_worker.names import CONFIG_PATH, SWAP_ORDER, TERMINATION_LOG, WEIGHTS_ROOT
from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError
from cosyvoice_worker.settings import Settings, parse_settings, read_document
from cosyvoice_worker.staging.attempt import Attempt
from cosyvoice_worker.staging.boundary import boundary_of
from cosyvoice_worker.staging.follow import Follower
from cosyvoice_worker.staging.pointer import Staged
from cosyvoice_worker.staging.stage import stage
from cosyvoice_worker.staging.task import Task

if TYPE_CHECKING:
    from cosyvoice_worker.commands.base import Subparsers

STALL_SECONDS = 120.0
POLL_SECONDS = 0.5


def add_parser(subparsers: Subparsers) -> None:
    """The command's options."""
    parser = subparsers.add_parser("stage", help="copy the weights into tmpfs, verified", description=__doc__)
    add = parser.add_argument
    add("--config", default=CONFIG_PATH, metavar="FILE", help="model.json (default %(default)s)")
    add("--root", default=WEIGHTS_ROOT, metavar="DIR", help="the tmpfs (default %(default)s)")
    add("--termination-log", default=TERMINATION_LOG, metavar="FILE", help="default %(default)s")
    add("--follow", action="store_true", help=f"stage what the file {SWAP_ORDER} beside model.json orders")
    add(
        "--stall-seconds",
        type=float,
        default=STALL_SECONDS,
        metavar="N",
        help="give up a source that gives no byte for so long (default %(default)g)",
    )


def run(args: argparse.Namespace) -> int:
    """Stage; 0 with the reason Staged in the termination message, or raise WorkerError. Or follow until a signal."""
    logs.configure("stager" if args.follow else "stage")
    end_on_signals()
    return _follow(args) if args.follow else _stage(args)


def _stage(args: argparse.Namespace) -> int:
    started = time.monotonic()
    try:
        config = documents.current(args.config)
        document = read_document(config, Phase.STAGE)
        settings = parse_settings(document, Phase.STAGE, name=config)
        logs.configure("stage", model=settings.model, version=settings.version, revision=settings.revision)
        task = Task(settings=settings, document=document, boundary=boundary_of(settings.source.path))
        staged = _done(Attempt(partial(stage, task, Path(args.root)), Path(args.root), args.stall_seconds))
    except WorkerError as error:
        raise WorkerError(replace(error.outcome, elapsed_seconds=time.monotonic() - started)) from error
    return conclude(_success(settings, staged), args.termination_log)


def _done(attempt: Attempt) -> Staged:
    try:
        while True:
            staged = attempt.result(POLL_SECONDS)
            if staged is not None:
                return staged
    finally:
        attempt.give_up()


def _success(settings: Settings, staged: Staged) -> Outcome:
    return Outcome(
        reason=Reason.STAGED,
        phase=Phase.STAGE,
        message=f"{staged.files} files of {settings.source.uri} staged",
        elapsed_seconds=staged.seconds,
        digest=staged.digest,
        bytes=staged.bytes,
    )


def _follow(args: argparse.Namespace) -> int:
    """Follow the orders until a signal ends it, which is then its normal end."""
    config = Path(args.config)
    follower = Follower(config, config.with_name(SWAP_ORDER), Path(args.root), args.stall_seconds)
    try:
        while True:
            follower.step()
            if not follower.is_busy:
                time.sleep(POLL_SECONDS)
    except SystemExit:
        message = "stopped as asked"
        return conclude(Outcome(reason=Reason.COMPLETED, phase=Phase.STAGE, message=message), args.termination_log)
    finally:
        follower.close()

"""`serve` after its first milliseconds: read the configuration, take over from the early listener, run the front."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import socket
import tempfile
from pathlib import Path

from cosyvoice_worker import logs
from cosyvoice_worker.outcome import Outcome, Phase, Reason, fail
from cosyvoice_worker.server import local
from cosyvoice_worker.server.front import Front
from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.server.process import ChildEngine
from cosyvoice_worker.server.reaper import Reaper
from cosyvoice_worker.server.spawn import spawn_engine
from cosyvoice_worker.server.start import Start
from cosyvoice_worker.server.state import FrontState, Identity
from cosyvoice_worker.server.voices import RegistryVoices
from cosyvoice_worker.settings import Settings, read_settings
from cosyvoice_worker.staging.pointer import Staged, read_pointer
from cosyvoice_worker.voices.registry import model_voices

PROCESS_ONE = 1

log = logging.getLogger(__name__)


def serve(args: argparse.Namespace, start: Start) -> Outcome:
    """Serve with what `start` has begun, and tell how it ended. Raises WorkerError when there is nothing to serve."""
    logs.configure("serve")
    if start.error is not None:
        raise fail(Reason.INVALID_CONFIG, Phase.SERVE, start.error)
    with tempfile.TemporaryDirectory(prefix="cosyvoice-") as scratch:
        if args.model is not None:
            args.root = Path(scratch)
            args.config = local.prepare(args.model, args.root, args.device, args.dtype, args.load_seconds)
        elif start.config is not None:
            args.config = start.config
        settings = read_settings(args.config, Phase.MAP)
        logs.configure("serve", model=settings.model, version=settings.version, revision=settings.revision)
        staged = read_pointer(args.root, Phase.MAP, settings.revision)
        outcome = asyncio.run(_run(args, start, settings, staged))
    return outcome or Outcome(reason=Reason.COMPLETED, phase=Phase.SERVE, message="stopped as asked")


async def _run(args: argparse.Namespace, start: Start, settings: Settings, staged: Staged) -> Outcome | None:
    reaper = Reaper(orphans=os.getpid() == PROCESS_ONE)
    reaper.start()
    arguments = ["--config", str(args.config), "--root", str(args.root), "--voices", str(args.voices)]

    def launch() -> ChildEngine:
        return ChildEngine(spawn_engine(arguments), reaper)

    front = Front(
        state=FrontState(identity=_identity(settings, staged), lazy=args.no_preload or not settings.engine.preload),
        voices=RegistryVoices(model_voices(args.root / staged.directory, args.voices)),
        limits=Limits(request_seconds=args.request_seconds, drain_seconds=args.drain_seconds),
        load_seconds=settings.engine.load_timeout_seconds,
        launch=launch,
        sockets=_take_over(start),
    )
    front.handle_signals()
    # What is there now stays for good: the collector need not walk over it again and again.
    gc.collect()
    gc.freeze()
    return await front.run(None if start.engine is None else ChildEngine(start.engine, reaper))


def _take_over(start: Start) -> tuple[socket.socket, socket.socket]:
    """The early listener's sockets, which from here on nobody else accepts on."""
    if start.listener is None or start.api is None or start.admin is None:
        raise RuntimeError("serve was run without its early part")
    start.listener.stop()
    api, admin = (socket.socket(fileno=early.detach()) for early in (start.api, start.admin))
    log.info("listening", extra={"port": api.getsockname()[1], "admin_port": admin.getsockname()[1]})
    return api, admin


def _identity(settings: Settings, staged: Staged) -> Identity:
    is_local = staged.digest == local.LOCAL
    return Identity(
        model=settings.model,
        version=settings.version,
        revision=settings.revision,
        digest=None if is_local else staged.digest,
        staged_bytes=None if is_local else staged.bytes,
        staged_seconds=None if is_local else staged.seconds,
    )

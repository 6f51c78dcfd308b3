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
from cosyvoice_worker.names import SWAP_ORDER
from cosyvoice_worker.outcome import Outcome, Phase, Reason, fail
from cosyvoice_worker.server import local
from cosyvoice_worker.server.api_keys import ApiKeys
from cosyvoice_worker.server.confinement import confine, keep
from cosyvoice_worker.server.front import Front
from cosyvoice_worker.server.http_server import allow_descriptors
from cosyvoice_worker.server.limits import Limits
from cosyvoice_worker.server.process import ChildEngine
from cosyvoice_worker.server.reaper import Reaper
from cosyvoice_worker.server.spawn import Spawned, spawn_engine
from cosyvoice_worker.server.speech_log import Tracer
from cosyvoice_worker.server.start import Start
from cosyvoice_worker.server.state import FrontState
from cosyvoice_worker.server.traces import tracing
from cosyvoice_worker.server.version import Version, read_version
from cosyvoice_worker.server.voices import RegistryVoices

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
        version = read_version(Path(start.config or args.config), args.root)
        _tell_logs(version)
        with tracing(os.environ, version.identity.model) as tracer:
            outcome = asyncio.run(_run(args, start, version, tracer))
    return outcome or Outcome(reason=Reason.COMPLETED, phase=Phase.SERVE, message="stopped as asked")


async def _run(args: argparse.Namespace, start: Start, version: Version, tracer: Tracer | None) -> Outcome | None:
    reaper = Reaper(orphans=os.getpid() == PROCESS_ONE)
    reaper.start()
    confinement = confine(version.memory_high)

    def child(spawned: Spawned, memory_bytes: int | None = None) -> ChildEngine:
        return ChildEngine(spawned, reaper, confinement.hold(spawned.pid, memory_bytes))

    def launch(version: Version, memory_bytes: int | None = None) -> ChildEngine:
        options = {"--config": version.document, "--root": args.root, "--voices": args.voices}
        if memory_bytes is not None:
            options["--memory-bytes"] = memory_bytes
        return child(spawn_engine([str(word) for option in options.items() for word in option]), memory_bytes)

    allow_descriptors()
    front = Front(
        state=FrontState(identity=version.identity, lazy=args.no_preload or not version.preload),
        version=version,
        voices=RegistryVoices(version.directory, args.voices),
        limits=Limits(request_seconds=args.request_seconds, drain_seconds=args.drain_seconds),
        launch=launch,
        sockets=_take_over(start),
        root=args.root,
        order_file=args.config.parent / SWAP_ORDER,
        on_switch=_tell_logs,
        api_keys=None if args.api_keys is None else ApiKeys(args.api_keys),
        memory_high=confinement.memory_high,
        tracer=tracer,
    )
    front.handle_signals()
    # What is there now stays for good: the collector need not walk over it again and again.
    gc.collect()
    gc.freeze()
    first = None if start.engine is None else child(start.engine)
    keeping = asyncio.create_task(keep(confinement))
    try:
        return await front.run(first)
    finally:
        keeping.cancel()


def _take_over(start: Start) -> tuple[socket.socket, socket.socket]:
    """The early listener's sockets, which from here on nobody else accepts on."""
    if start.listener is None or start.api is None or start.admin is None:
        raise RuntimeError("serve was run without its early part")
    start.listener.stop()
    api, admin = (socket.socket(fileno=early.detach()) for early in (start.api, start.admin))
    log.info("listening", extra={"port": api.getsockname()[1], "admin_port": admin.getsockname()[1]})
    return api, admin


def _tell_logs(version: Version) -> None:
    """Whose lines they are from now on."""
    identity = version.identity
    known = {"model": identity.model, "version": identity.version, "revision": identity.revision}
    logs.configure("serve", **{name: value for name, value in known.items() if value is not None})

"""Traces where the environment asks for them; elsewhere nothing of what makes them is imported."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping

from cosyvoice_worker._version import __version__
from cosyvoice_worker.server.speech_log import Tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
DISABLED = "OTEL_SDK_DISABLED"

SERVICE = "cosyvoice-worker"

log = logging.getLogger(__name__)


@contextlib.contextmanager
def tracing(environment: Mapping[str, str], model: str) -> Iterator[Tracer | None]:
    """What tells of requests to a collector while the context lasts; None where no traces are wanted.

    Variables that cannot be used are told in the log: nobody goes without speech for want of traces.
    """
    wanted = any(environment.get(name) for name in ENDPOINTS)
    if not wanted or environment.get(DISABLED, "").lower() == "true":
        yield None
        return
    from cosyvoice_worker.server.speech_trace import SpeechTracer  # noqa: PLC0415 - as the first line says
    from cosyvoice_worker.tracing.exporter import Exporter  # noqa: PLC0415
    from cosyvoice_worker.tracing.settings import TracingError, from_environment  # noqa: PLC0415

    resource = {"service.name": SERVICE, "service.version": __version__, "cosyvoice.model": model}
    if pod := environment.get("HOSTNAME"):
        resource["k8s.pod.name"] = pod
    try:
        settings = from_environment(environment, resource)
        exporter = Exporter(settings)
    except (TracingError, OSError) as error:
        log.error("there are no traces: %s", error)
        yield None
        return
    log.info("requests are traced", extra={"endpoint": settings.endpoint})
    try:
        yield SpeechTracer(exporter.export)
    finally:
        exporter.close()

"""The worker's Prometheus metrics, in one registry that the caller makes."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.process_collector import ProcessCollector

from cosyvoice_worker._version import __version__
from cosyvoice_worker.memory_metrics import ContainerMemory

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_LOAD_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 5, 10, 20)

# As `/status` names them.
LOAD_PHASES = ("import", "map", "build", "warmUp", "total")
SWAP_RESULTS = ("switched", "failed", "no-room", "superseded")
# Outcomes for which the worker is to blame, and not the request or its client: the error ratio counts them.
FAULTS = (
    "deadline-passed",
    "engine-died",
    "internal-error",
    "no-api-keys",
    "not-ready",
    "stopping",
    "synthesis-failed",
)
# They and these are there from the start: a series that begins with its first event has no increase then.
_FROM_THE_START = ("ok", "queue-full", *FAULTS)

# A series with the time of creation beside each other one tells nothing here that the start of the process does not.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library left this one without types


class Metrics:
    """All metrics of one front. `outcome` is "ok" or the kind of the problem a request ended with."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.requests = Counter("cosyvoice_requests", "Speech requests by outcome.", ["outcome"], registry=registry)
        self.request_seconds = Histogram(
            "cosyvoice_request_seconds",
            "From a speech request's arrival to its end.",
            ["outcome"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.first_audio_seconds = Histogram(
            "cosyvoice_time_to_first_audio_seconds",
            "From a speech request's arrival to its first audio.",
            ["mode"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.real_time_factor = Histogram(
            "cosyvoice_real_time_factor",
            "Seconds of synthesis for a second of audio.",
            buckets=_RATIOS,
            registry=registry,
        )
        self.audio_seconds = Counter("cosyvoice_audio_seconds", "Audio made for clients.", registry=registry)
        self.queue_depth = Gauge("cosyvoice_queue_depth", "Requests that wait for the engine.", registry=registry)
        self.queue_wait_seconds = Histogram(
            "cosyvoice_queue_wait_seconds", "How long requests waited.", buckets=_SECONDS, registry=registry
        )
        self.queue_limit = Gauge(
            "cosyvoice_queue_limit", "Requests that may wait; one more is refused.", registry=registry
        )
        self.in_flight = Gauge("cosyvoice_requests_in_flight", "Requests in the engine.", registry=registry)
        self.load_seconds = Histogram(
            "cosyvoice_load_duration_seconds",
            "Loading by phase (import, map, build, warmUp, total).",
            ["phase"],
            buckets=_LOAD_SECONDS,
            registry=registry,
        )
        self.ready = Gauge("cosyvoice_ready", "Whether the worker serves.", registry=registry)
        self.engine_restarts = Counter(
            "cosyvoice_engine_restarts", "Engines replaced, by why the last one ended.", ["reason"], registry=registry
        )
        self.engine_swaps = Counter(
            "cosyvoice_engine_swaps",
            f"Orders to serve another revision, by how they ended ({', '.join(SWAP_RESULTS)}).",
            ["result"],
            registry=registry,
        )
        self.engine_recycles = Counter(
            "cosyvoice_engine_recycles",
            "Fresh engines for the same revision, by what called for them and how that ended.",
            ["reason", "result"],
            registry=registry,
        )
        self.staged_bytes = Gauge("cosyvoice_staged_bytes", "Size of the staged weights.", registry=registry)
        self.model_info = Gauge(
            "cosyvoice_model_info",
            "What serves here: one series, always 1.",
            ["version", "revision", "digest", "device", "dtype"],
            registry=registry,
        )
        self.worker_info = Gauge(
            "cosyvoice_worker_info", "The worker's release: always 1.", ["release"], registry=registry
        )
        self.worker_info.labels(release=__version__).set(1)
        for phase in LOAD_PHASES:
            self.load_seconds.labels(phase=phase)
        for result in SWAP_RESULTS:
            self.engine_swaps.labels(result=result)
        for outcome in _FROM_THE_START:
            self.requests.labels(outcome=outcome)
        ProcessCollector(registry=registry)
        registry.register(ContainerMemory())

    def tell_identity(self, labels: Mapping[str, str | None]) -> None:
        """Replace the one `cosyvoice_model_info` series; what is not known yet is an empty label."""
        self.model_info.clear()
        self.model_info.labels(**{name: value or "" for name, value in labels.items()}).set(1)

    def render(self) -> bytes:
        """The exposition in text format."""
        return generate_latest(self.registry)

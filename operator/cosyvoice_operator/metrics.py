"""The operator's own metrics, served on the metrics port."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics, start_http_server

from cosyvoice_operator.errors import ClusterError

# When a series began tells nothing here that the start of the process does not.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library left this one without types

RECONCILE_SECONDS = Histogram(
    "cosyvoice_operator_reconcile_seconds",
    "Duration of one pass over one model, in seconds.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
RECONCILE_ERRORS = Counter(
    "cosyvoice_operator_reconcile_errors_total",
    "Passes that ended with an error and are tried again.",
    ["error"],
)
API_REQUESTS = Counter(
    "cosyvoice_operator_api_requests_total",
    "Requests to the API server; code 0 where no answer came.",
    ["verb", "kind", "code"],
)
ROLLBACKS = Counter(
    "cosyvoice_operator_rollbacks_total",
    "Versions that were taken out of service because they failed.",
    ["model_namespace", "model", "reason"],
)
MODELS = Gauge(
    "cosyvoice_operator_models",
    "Models by the reason in their status.",
    ["reason"],
)
# `namespace` would clash with that of the operator's pod, which Prometheus adds.
MODEL_REASON = Gauge(
    "cosyvoice_operator_model_reason",
    "The reason in a model's status: one series a model, always 1.",
    ["model_namespace", "model", "reason"],
)

# A series that begins with its first event has no increase then: these are there from the start.
ERRORS: tuple[type[ClusterError], ...] = (ClusterError, *ClusterError.__subclasses__())
for error in ERRORS:
    RECONCILE_ERRORS.labels(error.__name__)


def serve(port: int) -> None:
    """Serve /metrics on `port`, on every address, from a thread of its own."""
    start_http_server(port)


class ModelCount:
    """Keeps MODELS and MODEL_REASON: how many models stand at each reason, and which."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[str, str], str] = {}

    def set(self, key: tuple[str, str], reason: str | None) -> None:
        """The model `key` (namespace, name) stands at `reason` now; None: it is gone."""
        before = self._reasons.pop(key, None)
        if before is not None:
            MODELS.labels(before).dec()
            MODEL_REASON.remove(*key, before)
        if reason is not None:
            self._reasons[key] = reason
            MODELS.labels(reason).inc()
            MODEL_REASON.labels(*key, reason).set(1)

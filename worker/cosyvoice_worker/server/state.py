"""What the front knows of itself and its engine, and the document `/status` makes of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from cosyvoice_worker.names import STATUS_SCHEMA
from cosyvoice_worker.outcome import Outcome
from cosyvoice_worker.server.report import SwapReport

START = "Start"
READY = "Ready"
FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose weights these are. Without Kubernetes only `model` is known."""

    model: str
    version: str | None = None
    revision: str | None = None
    digest: str | None = None
    staged_bytes: int | None = None
    staged_seconds: float | None = None


@dataclass(slots=True, kw_only=True)
class FrontState:
    """Changed by the supervisor and the signal handler, read by the pages. `lazy`: ready before anything is loaded."""

    identity: Identity
    lazy: bool = False
    phase: str = START
    engine_ready: bool = False
    draining: bool = False
    device: str | None = None
    dtype: str | None = None
    sample_rate: int = 0
    load: dict[str, float] = field(default_factory=dict)
    engine_pid: int | None = None
    restarts: int = 0
    failure: Outcome | None = None
    swap: SwapReport | None = None

    @property
    def serving(self) -> bool:
        """Whether speech requests are taken; also while draining, for those that were already on their way."""
        return self.engine_ready or self.lazy

    @property
    def ready(self) -> bool:
        """What the readiness probe is told."""
        return self.serving and not self.draining

    def health(self) -> dict[str, object]:
        """The body of `/health`."""
        return {"phase": self.phase, "draining": True} if self.draining else {"phase": self.phase}

    def status(self, in_flight: int, queued: int) -> dict[str, object]:
        """The body of `/status`, as docs/architecture.md describes it."""
        staged = None
        if self.identity.staged_bytes is not None:
            staged = {"bytes": self.identity.staged_bytes, "seconds": self.identity.staged_seconds}
        return {
            "schema": STATUS_SCHEMA,
            "model": self.identity.model,
            "version": self.identity.version,
            "revision": self.identity.revision,
            "digest": self.identity.digest,
            "phase": self.phase,
            "ready": self.ready,
            "device": self.device,
            "dtype": self.dtype,
            "load": {phase: round(seconds, 3) for phase, seconds in self.load.items()},
            "engine": {
                "pid": self.engine_pid,
                "restarts": self.restarts,
                "inFlight": in_flight,
                "queued": queued,
            },
            "staged": staged,
            "failure": None if self.failure is None else json.loads(self.failure.to_json()),
            "swap": None if self.swap is None else self.swap.document(),
        }

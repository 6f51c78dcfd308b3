"""Shows a model's conditions as they change, until it is Ready or cannot become so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dev.kubectl import Kubectl


class NotReadyError(Exception):
    """The model did not become Ready; the message is what its status says."""


@dataclass(frozen=True)
class Change:
    """One condition that took a new value."""

    seconds: float
    condition: str
    status: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.seconds:6.1f} s  {self.condition:<14} {self.status:<8} {self.reason:<22} {self.message}".rstrip()


def changes(before: dict[str, Any] | None, after: dict[str, Any], seconds: float) -> Iterator[Change]:
    """The conditions whose status, reason or message differ between two readings of a model."""
    old = {c["type"]: c for c in _conditions(before)}
    for condition in _conditions(after):
        previous = old.get(condition["type"], {})
        if any(previous.get(key) != condition.get(key) for key in ("status", "reason", "message")):
            yield Change(
                seconds,
                condition["type"],
                condition["status"],
                condition.get("reason", ""),
                condition.get("message", ""),
            )


def until_ready(kubectl: Kubectl, namespace: str, name: str, timeout: float) -> dict[str, Any]:
    """Print each change; return the Ready model. Raises NotReadyError when it stalls or time runs out."""
    start = time.monotonic()
    before: dict[str, Any] | None = None
    while (elapsed := time.monotonic() - start) < timeout:
        model: dict[str, Any] | None = kubectl.get("-n", namespace, "cosyvoicemodel", name)
        if model is not None:
            for change in changes(before, model, elapsed):
                print(f"  {change}", flush=True)
            before = model
            current = model.get("status", {}).get("observedGeneration") == model["metadata"]["generation"]
            if current and _is(model, "Ready"):
                return model
            if current and _is(model, "Stalled"):
                raise NotReadyError(model["status"].get("message", "stalled"))
        time.sleep(0.3)
    status = (before or {}).get("status", {})
    raise NotReadyError(
        f"not Ready after {timeout:.0f} s: {status.get('reason', '?')}: {status.get('message', 'no status yet')}"
    )


def _conditions(model: dict[str, Any] | None) -> list[dict[str, Any]]:
    conditions: list[dict[str, Any]] = (model or {}).get("status", {}).get("conditions", [])
    return conditions


def _is(model: dict[str, Any], condition: str) -> bool:
    return any(c["type"] == condition and c["status"] == "True" for c in _conditions(model))

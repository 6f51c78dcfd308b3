"""The figures the demo prints: where the time from apply to Ready went, and what was spoken."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dev.demo.speak import Speech


def timeline(model: dict[str, Any], pod: dict[str, Any]) -> list[tuple[str, float]]:
    """Named parts, in seconds, of the time from the model's creation to Ready, for one pod.

    Kubernetes' own timestamps have whole seconds; the worker's parts are measured by the worker.
    """
    created = _time(model["metadata"]["creationTimestamp"])
    ready = _condition_time(model, "Ready")
    scheduled = _condition_time(pod, "PodScheduled")
    status = model["status"]
    load: dict[str, float] = status.get("load") or {}
    return [
        ("apply to scheduled", (scheduled - created).total_seconds()),
        ("stage", float((status.get("staged") or {}).get("seconds", 0.0))),
        ("import torch", float(load.get("import", 0.0))),
        ("map", float(load.get("map", 0.0))),
        ("build", float(load.get("build", 0.0))),
        ("warm up", float(load.get("warmUp", 0.0))),
        ("apply to Ready, in all", (ready - created).total_seconds()),
    ]


def speech_lines(speech: Speech) -> list[str]:
    """What was spoken, in words."""
    return [
        f"length            {speech.seconds_of_audio:.2f} s at {speech.sample_rate} Hz",
        f"real-time factor  {speech.real_time_factor:.2f} (below 1 is faster than speaking)",
        f"speech tokens     {speech.speech_tokens}, sha256 {speech.speech_tokens_sha256}",
        f"seed              {speech.seed}",
    ]


def _condition_time(thing: dict[str, Any], kind: str) -> datetime:
    for condition in thing["status"]["conditions"]:
        if condition["type"] == kind:
            return _time(condition["lastTransitionTime"])
    raise LookupError(f"{thing['kind']} {thing['metadata']['name']} has no condition {kind}")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)

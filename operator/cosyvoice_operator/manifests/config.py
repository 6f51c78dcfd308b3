"""model.json, the worker's configuration. docs/architecture.md has the contract."""

from __future__ import annotations

from typing import Any

from cosyvoice_operator import names, quantity
from cosyvoice_operator.api import Identity
from cosyvoice_operator.api_spec import Recycle
from cosyvoice_operator.revision import Resolved


def model_config(owner: Identity, revision: str, resolved: Resolved) -> dict[str, Any]:
    """The worker's configuration for `revision`."""
    spec = resolved.spec
    return {
        "schema": names.CONFIG_SCHEMA,
        "namespace": owner.namespace,
        "model": owner.name,
        "version": spec.version,
        "revision": revision,
        "source": {"uri": spec.source.uri, "path": resolved.source.path_in_pod, "digest": spec.source.digest},
        "staging": {"sizeLimitBytes": quantity.to_integer(resolved.size_limit), "verify": spec.staging.verify},
        "engine": {
            "device": resolved.device,
            "dtype": spec.engine.dtype,
            "loadTimeoutSeconds": resolved.load_timeout_seconds,
            "preload": spec.engine.preload,
            "fallbackToCPU": spec.engine.fallback_to_cpu,
            "warmUp": {
                "texts": list(resolved.warm_up_texts),
                "voice": spec.engine.warm_up.voice,
                "maxSeconds": float(spec.engine.warm_up.max_seconds),
            },
            **_recycle(spec.engine.recycle),
        },
        **({} if resolved.memory_high is None else {"memoryHighBytes": resolved.memory_high}),
    }


def _recycle(recycle: Recycle) -> dict[str, Any]:
    """Nothing where nothing is asked for: a worker image of an earlier release refuses fields it does not know."""
    if recycle == Recycle():
        return {}
    growth = recycle.max_memory_growth
    return {
        "recycle": {
            "maxRequests": recycle.max_requests,
            "maxMemoryGrowthBytes": None if growth is None else quantity.to_integer(growth),
        }
    }

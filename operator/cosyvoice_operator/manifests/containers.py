"""The containers of a worker pod."""

from __future__ import annotations

from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.manifests import volumes
from cosyvoice_operator.revision import Resolved

# Between the pod's leaving the endpoints and SIGTERM: proxies need a moment to hear of it.
PRE_STOP_SECONDS = 5
STAGER_CPU_REQUEST = "10m"
STAGER_MEMORY_REQUEST = "64Mi"

_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
# What a container of the user's gets: its root file system may be writable, unlike ours.
SIDECAR_SECURITY = {name: value for name, value in _SECURITY.items() if name != "readOnlyRootFilesystem"}


def stage_container(resolved: Resolved) -> dict[str, Any]:
    """`stage`. Its memory request equals its limit: what it copies is charged to it and must never be throttled."""
    return {
        **_common(names.STAGE_CONTAINER, "stage", resolved),
        "resources": {
            "requests": {"cpu": resolved.requests["cpu"], "memory": resolved.stage_memory},
            "limits": {"memory": resolved.stage_memory},
        },
        "volumeMounts": [volumes.mount_source(), volumes.mount_weights(), volumes.mount_config(), volumes.mount_tmp()],
    }


def stager_container(resolved: Resolved) -> dict[str, Any]:
    """`stager`: stays beside the worker and stages what the pod is ordered to load in place.

    What it stages is charged to it as long as it lives, so it may take as much as `stage`; it asks for next to nothing,
    because most of the time it does nothing.
    """
    return {
        **_common(names.STAGER_CONTAINER, "stage", resolved),
        "args": ["stage", "--follow"],
        "restartPolicy": "Always",
        "resources": {
            "requests": {"cpu": STAGER_CPU_REQUEST, "memory": STAGER_MEMORY_REQUEST},
            "limits": {"memory": resolved.stage_memory},
        },
        "volumeMounts": [volumes.mount_source(), volumes.mount_weights(), volumes.mount_config(), volumes.mount_tmp()],
    }


def worker_container(resolved: Resolved) -> dict[str, Any]:
    """`worker`. Its front answers /ping at once, and /health with 200 only when the model is warm."""
    guarded = resolved.spec.access.api_keys_secret is not None
    return {
        **_common(names.WORKER_CONTAINER, "serve", resolved),
        # Said to the program itself, so that one that does not know of keys does not start instead of serving all.
        "args": ["serve", *(["--api-keys", names.API_KEYS_PATH] if guarded else [])],
        "ports": [
            {"name": names.API_PORT_NAME, "containerPort": names.API_PORT, "protocol": "TCP"},
            {"name": names.ADMIN_PORT_NAME, "containerPort": names.ADMIN_PORT, "protocol": "TCP"},
        ],
        "resources": {"requests": dict(resolved.requests), "limits": dict(resolved.limits)},
        "startupProbe": _probe(names.PATH_PING, period=1, timeout=2, failures=60),
        "livenessProbe": _probe(names.PATH_PING, period=10, timeout=5, failures=6),
        "readinessProbe": _probe(names.PATH_HEALTH, period=1, timeout=2, failures=3),
        "lifecycle": {"preStop": {"sleep": {"seconds": PRE_STOP_SECONDS}}},
        "volumeMounts": [
            volumes.mount_weights(),
            volumes.mount_config(),
            volumes.mount_voices(),
            *([volumes.mount_api_keys()] if guarded else []),
            volumes.mount_tmp(),
        ],
    }


def _common(name: str, command: str, resolved: Resolved) -> dict[str, Any]:
    common: dict[str, Any] = {
        "name": name,
        "image": resolved.image,
        "args": [command],
        "securityContext": _SECURITY,
        "terminationMessagePath": names.TERMINATION_LOG,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if resolved.spec.worker.env:
        common["env"] = list(resolved.spec.worker.env)
    return common


def _probe(path: str, *, period: int, timeout: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": names.ADMIN_PORT_NAME},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }

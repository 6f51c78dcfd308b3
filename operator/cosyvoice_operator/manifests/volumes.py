"""The volumes of a worker pod, and where each is mounted."""

from __future__ import annotations

from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.revision import Resolved
from cosyvoice_operator.source import ClaimSource

TMP_SIZE = "1Gi"

_SOURCE, _WEIGHTS, _CONFIG, _VOICES, _TMP = "source", "weights", names.CONFIG_VOLUME, "voices", "tmp"
_API_KEYS = "api-keys"


def volumes(model: str, revision: str, resolved: Resolved) -> list[dict[str, Any]]:
    """All volumes: the source, the memory the weights live in, the revision's configuration, the voices, /tmp, and the
    API keys where there are any.

    Without the Secret of the keys no pod starts: one that started would have to turn everybody away, or nobody.
    """
    secret = resolved.spec.access.api_keys_secret
    return [
        {"name": _SOURCE, **_source(resolved)},
        {"name": _WEIGHTS, "emptyDir": {"medium": "Memory", "sizeLimit": resolved.size_limit}},
        {"name": _CONFIG, "projected": {"sources": _configuration(model, revision)}},
        {"name": _VOICES, "configMap": {"name": names.voices_name(model), "optional": True}},
        {"name": _TMP, "emptyDir": {"sizeLimit": TMP_SIZE}},
        *([] if secret is None else [{"name": _API_KEYS, "secret": {"secretName": secret}}]),
    ]


def mount_source() -> dict[str, Any]:
    return {"name": _SOURCE, "mountPath": names.SOURCE_ROOT, "readOnly": True}


def mount_weights() -> dict[str, Any]:
    return {"name": _WEIGHTS, "mountPath": names.WEIGHTS_ROOT}


def mount_config() -> dict[str, Any]:
    """A directory, never a subPath: the kubelet does not refresh those."""
    return {"name": _CONFIG, "mountPath": names.CONFIG_DIRECTORY, "readOnly": True}


def mount_voices() -> dict[str, Any]:
    return {"name": _VOICES, "mountPath": names.VOICES_CONFIG_PATH, "readOnly": True}


def mount_api_keys() -> dict[str, Any]:
    return {"name": _API_KEYS, "mountPath": names.API_KEYS_PATH, "readOnly": True}


def mount_tmp() -> dict[str, Any]:
    return {"name": _TMP, "mountPath": names.TEMPORARY_DIRECTORY}


def _configuration(model: str, revision: str) -> list[dict[str, Any]]:
    """What the pod was made for, what it is to load instead (only once it was ever swapped), and the order to swap.

    The kubelet refreshes the whole volume within a second of a change of the pod's annotation; a change of a ConfigMap
    alone may take it a minute.
    """
    order = {"path": names.KEY_SWAP, "fieldRef": {"fieldPath": f"metadata.annotations['{names.ANNOTATION_SWAP}']"}}
    return [
        {
            "configMap": {
                "name": names.revision_name(model, revision),
                "items": [{"key": names.KEY_CONFIG, "path": names.KEY_CONFIG}],
            }
        },
        {"configMap": {"name": names.live_name(model, revision), "optional": True}},
        {"downwardAPI": {"items": [order]}},
    ]


def _source(resolved: Resolved) -> dict[str, Any]:
    """The source. Only its mount is read-only: a claim's own `readOnly` would attach the volume in another mode."""
    if isinstance(resolved.source, ClaimSource):
        return {"persistentVolumeClaim": {"claimName": resolved.source.claim}}
    return {"hostPath": {"path": resolved.source.path, "type": "Directory"}}

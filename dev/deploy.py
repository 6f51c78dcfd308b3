"""The operator as plain manifests: its namespace, the CRD, and what the chart makes of this project's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dev import helm

NAMESPACE = "cosyvoice-system"
RELEASE = "cosyvoice"
NAME = "cosyvoice-operator"

# What the staging container of a small test model needs. The default of 5Gi is for the published model; a model that
# requests more memory for its workers gets that for staging too.
SMALL_STAGE_MEMORY = "512Mi"

CRD = Path(__file__).parents[1] / "crds" / "cosyvoicemodels.yaml"
_NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {
        "name": NAMESPACE,
        "labels": {
            "pod-security.kubernetes.io/enforce": "restricted",
            "pod-security.kubernetes.io/enforce-version": "latest",
        },
    },
}


def render(
    *,
    operator_image: str,
    worker_image: str,
    device: str = "cpu",
    resync_seconds: float | None = None,
    stage_memory: str = SMALL_STAGE_MEMORY,
    allow_host_path: str = "",
) -> list[dict[str, Any]]:
    """All objects, in an order in which they can be applied. Settings not named here stay at the chart's defaults.

    The CRD is the source itself, not the chart's copy: so an edit of it counts at once.
    """
    values: dict[str, Any] = {
        "crds": {"enabled": False},
        "images": {"operator": _image(operator_image), "worker": _image(worker_image)},
        "modelDefaults": {"device": device, "stageMemory": stage_memory},
        "allowHostPaths": [path for path in allow_host_path.split(",") if path],
    }
    if resync_seconds is not None:
        values["resyncSeconds"] = resync_seconds
    rendered = helm.find().template(RELEASE, NAMESPACE, values, "--no-hooks")
    return [_NAMESPACE, yaml.safe_load(CRD.read_text(encoding="utf-8")), *rendered]


def _image(reference: str) -> dict[str, str]:
    repository, _, tag = reference.rpartition(":")
    return {"repository": repository, "tag": tag}

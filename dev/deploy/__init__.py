"""The operator as plain manifests: the CRD, a namespace, RBAC and a Deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

NAMESPACE = "cosyvoice-system"
NAME = "cosyvoice-operator"

# What the staging container of a small test model needs. The default of 5Gi is for the published model; a model that
# requests more memory for its workers gets that for staging too.
SMALL_STAGE_MEMORY = "512Mi"

_HERE = Path(__file__).parent
_CRD = _HERE.parent.parent / "crds" / "cosyvoicemodels.yaml"


def render(
    *,
    operator_image: str,
    worker_image: str,
    device: str = "cpu",
    resync_seconds: float | None = None,
    stage_memory: str = SMALL_STAGE_MEMORY,
    allow_host_path: str = "",
) -> list[dict[str, Any]]:
    """All objects, in an order in which they can be applied. Settings not named here stay at their defaults."""
    variables = {
        "COSYVOICE_WORKER_IMAGE": worker_image,
        "COSYVOICE_DEVICE": device,
        "COSYVOICE_STAGE_MEMORY": stage_memory,
        "COSYVOICE_ALLOW_HOST_PATH": allow_host_path,
    }
    if resync_seconds is not None:
        variables["COSYVOICE_RESYNC_SECONDS"] = str(resync_seconds)
    objects = [
        document
        for path in (_CRD, *(_HERE / name for name in ("namespace.yaml", "rbac.yaml", "operator.yaml")))
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    ]
    (container,) = objects[-1]["spec"]["template"]["spec"]["containers"]
    container["image"] = operator_image
    container["env"] += [{"name": name, "value": value} for name, value in variables.items() if value]
    return objects

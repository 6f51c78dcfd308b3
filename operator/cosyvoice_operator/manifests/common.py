"""What all children have in common: names, labels, the owner, and the mark of what was applied."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.api import Identity

Manifest = dict[str, Any]


def labels(model: str) -> dict[str, str]:
    """Labels of every child and pod of a model."""
    return {
        names.LABEL_APP_NAME: names.APP_NAME,
        names.LABEL_APP_INSTANCE: model,
        names.LABEL_APP_PART_OF: names.APP_NAME,
        names.LABEL_APP_MANAGED_BY: names.FIELD_MANAGER,
        names.LABEL_MODEL: model,
    }


def child(
    owner: Identity,
    api_version: str,
    kind: str,
    name: str,
    *,
    body: Mapping[str, Any],
    extra_labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Manifest:
    """A child of `owner`, with `body` beside its metadata; it goes when its owner goes."""
    manifest: Manifest = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": labels(owner.name) | dict(extra_labels or {}),
            "annotations": dict(annotations or {}),
            "ownerReferences": [
                {
                    "apiVersion": names.API_VERSION,
                    "kind": names.KIND,
                    "name": owner.name,
                    "uid": owner.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        **body,
    }
    manifest["metadata"]["annotations"][names.ANNOTATION_APPLIED] = _fingerprint(manifest)
    return manifest


def _fingerprint(manifest: Manifest) -> str:
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""A revision's immutable ConfigMap: the rendered pod template, and the worker's configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.api import Identity
from cosyvoice_operator.manifests.common import Manifest, child
from cosyvoice_operator.manifests.config import model_config
from cosyvoice_operator.revision import Resolved


def config_map(owner: Identity, revision: str, resolved: Resolved, template: Mapping[str, Any]) -> Manifest:
    """The ConfigMap of `revision`. The template is stored as rendered: coming back to it applies exactly that."""
    return child(
        owner,
        "v1",
        "ConfigMap",
        names.revision_name(owner.name, revision),
        extra_labels={
            names.LABEL_REVISION: revision,
            names.LABEL_VERSION: resolved.spec.version,
            names.LABEL_OUTCOME: names.OUTCOME_PENDING,
        },
        annotations={
            names.ANNOTATION_SOURCE: resolved.spec.source.uri,
            names.ANNOTATION_IMAGE: resolved.image,
        },
        body={
            "immutable": True,
            "data": {
                names.KEY_CONFIG: json.dumps(model_config(owner, revision, resolved), indent=2),
                names.KEY_TEMPLATE: json.dumps(template, indent=2),
            },
        },
    )

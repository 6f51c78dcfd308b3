"""The PodDisruptionBudget: a drained node takes one replica at a time."""

from __future__ import annotations

from cosyvoice_operator import names
from cosyvoice_operator.api import Model
from cosyvoice_operator.manifests.common import Manifest, child


def disruption_budget(model: Model) -> Manifest:
    """One replica may be evicted at a time; one that is not ready anyway never blocks a drain (KEP-3017)."""
    return child(
        model.identity,
        "policy/v1",
        "PodDisruptionBudget",
        model.name,
        body={
            "spec": {
                "maxUnavailable": 1,
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
                "selector": {"matchLabels": names.selector_labels(model.name)},
            }
        },
    )

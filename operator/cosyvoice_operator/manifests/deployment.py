"""The Deployment: how many pods of a stored template, and how they are replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.api import Model
from cosyvoice_operator.manifests.common import Manifest, child

# A replica counts as available after it was ready for this long: a worker that dies at its first request is not good.
MIN_READY_SECONDS = 5

# One more pod at a time, or one less. Both are RollingUpdate to Kubernetes: an apply that changes the type is refused.
# What cannot be swapped in place is rolled out with one more.
_SURGE_AND_UNAVAILABLE = {"RollingUpdate": (1, 0), "Auto": (1, 0), "HotSwap": (1, 0), "Replace": (0, 1)}


def deployment(model: Model, template: Mapping[str, Any], *, strategy: str, autoscaled: bool) -> Manifest:
    """The Deployment that runs `template`, its pods replaced by `strategy`.

    `autoscaled`: someone else sets the replicas, they are not applied.
    """
    spec = model.spec
    surge, unavailable = _SURGE_AND_UNAVAILABLE[strategy]
    replicas = {} if autoscaled else {"replicas": spec.worker.replicas}
    return child(
        model.identity,
        "apps/v1",
        "Deployment",
        model.name,
        extra_labels={names.LABEL_APP_COMPONENT: names.COMPONENT_WORKER},
        body={
            "spec": {
                **replicas,
                "paused": False,  # a Deployment that someone paused would begin no rollout, and say nothing
                "selector": {"matchLabels": names.selector_labels(model.name)},
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
                },
                "minReadySeconds": MIN_READY_SECONDS,
                "progressDeadlineSeconds": spec.rollout.progress_deadline_seconds,
                "revisionHistoryLimit": spec.rollout.history_limit,
                "template": dict(template),
            }
        },
    )

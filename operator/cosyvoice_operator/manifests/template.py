"""The pod template of a revision: `stage` copies the weights into the pod's memory, `worker` maps and serves them.

Where versions may be swapped in place, `stager` stays beside the worker and stages the next one.
"""

from __future__ import annotations

from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.manifests.common import labels
from cosyvoice_operator.manifests.containers import stage_container, stager_container, worker_container
from cosyvoice_operator.manifests.pod_overlay import lay_over
from cosyvoice_operator.manifests.volumes import volumes
from cosyvoice_operator.revision import Resolved, swaps

# A pod ends when its last request does. This is for one that begins just before and takes the 300 s it may, after the
# 5 s in which the endpoint is withdrawn.
TERMINATION_GRACE_SECONDS = 330

_POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": names.WORKER_UID,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod_template(model: str, revision: str, resolved: Resolved) -> dict[str, Any]:
    """The template that is stored with the revision. It fits Pod Security `restricted` unless the source is a hostPath.

    No fsGroup: the kubelet would change the owner of every file of the user's volume.
    """
    worker, high = resolved.spec.worker, resolved.memory_high
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": TERMINATION_GRACE_SECONDS,
        "securityContext": _POD_SECURITY,
        "initContainers": [stage_container(resolved), *([stager_container(resolved)] if swaps(resolved.spec) else [])],
        "containers": [worker_container(resolved)],
        "volumes": volumes(model, revision, resolved),
    }
    optional = {
        "affinity": _affinity(model, worker.anti_affinity),
        "nodeSelector": worker.node_selector,
        "tolerations": list(worker.tolerations),
        "runtimeClassName": worker.runtime_class_name,
        "priorityClassName": worker.priority_class_name,
        "serviceAccountName": worker.service_account_name,
        "imagePullSecrets": list(worker.image_pull_secrets),
    }
    spec |= {name: value for name, value in optional.items() if value}
    template = {
        "metadata": {
            "labels": {
                **labels(model),
                names.LABEL_APP_COMPONENT: names.COMPONENT_WORKER,
                names.LABEL_APP_VERSION: resolved.spec.version,
                names.LABEL_VERSION: resolved.spec.version,
                names.LABEL_REVISION: revision,
                **({} if high is None else {names.LABEL_MEMORY_HIGH: str(high)}),
            },
            "annotations": {"kubectl.kubernetes.io/default-container": names.WORKER_CONTAINER},
        },
        "spec": spec,
    }
    return lay_over(template, worker.pod_template, names.selector_labels(model))


def _affinity(model: str, anti_affinity: str) -> dict[str, Any] | None:
    """Replicas of one ReplicaSet keep apart; scoped so, a rollout is not kept off the nodes of its predecessor."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": names.selector_labels(model)},
        "matchLabelKeys": ["pod-template-hash"],
    }
    if anti_affinity == "Required":
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if anti_affinity == "Preferred":
        preferred = [{"weight": 100, "podAffinityTerm": term}]
        return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return None

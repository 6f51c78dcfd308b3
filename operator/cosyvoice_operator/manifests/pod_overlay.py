"""Lays a user's overlay over the pod template: what has a name is merged by it, everything else is added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.api_spec import PodTemplate
from cosyvoice_operator.manifests.containers import SIDECAR_SECURITY

_ADDED = ("schedulerName", "resourceClaims", "hostAliases", "dnsPolicy", "dnsConfig")


def lay_over(template: dict[str, Any], overlay: PodTemplate, selector: Mapping[str, str]) -> dict[str, Any]:
    """The template with `overlay` on it, which `overlay.check` has let pass. `selector` finds the model's pods."""
    metadata, spec, wanted = template["metadata"], template["spec"], overlay.spec
    added = {name: wanted[name] for name in _ADDED if wanted.get(name)}
    if wanted.get("affinity"):
        added["affinity"] = _affinity(spec.get("affinity") or {}, wanted["affinity"])
    if wanted.get("topologySpreadConstraints"):
        added["topologySpreadConstraints"] = [_spread(one, selector) for one in wanted["topologySpreadConstraints"]]
    return {
        "metadata": {
            **metadata,
            "labels": {**overlay.metadata.labels, **metadata["labels"]},
            "annotations": {**metadata["annotations"], **overlay.metadata.annotations},
        },
        "spec": {
            **spec,
            **added,
            "initContainers": _containers(spec["initContainers"], wanted.get("initContainers") or ()),
            "containers": _containers(spec["containers"], wanted.get("containers") or ()),
            "volumes": [*spec["volumes"], *(wanted.get("volumes") or ())],
        },
    }


def _containers(own: Sequence[dict[str, Any]], wanted: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The operator's first, each with what is laid over it, then the user's. `stager` gets what `stage` gets."""
    by_name = {one["name"]: one for one in wanted}
    if names.STAGE_CONTAINER in by_name:
        by_name[names.STAGER_CONTAINER] = by_name[names.STAGE_CONTAINER]
    ours = {container["name"] for container in own}
    return [
        *(_merged(container, by_name.get(container["name"], {})) for container in own),
        *(_confined(one) for one in wanted if one["name"] not in ours),
    ]


def _merged(container: dict[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(container)
    if wanted.get("env"):
        named = {one["name"] for one in wanted["env"]}
        merged["env"] = [*(one for one in container.get("env", ()) if one["name"] not in named), *wanted["env"]]
    if wanted.get("envFrom"):
        merged["envFrom"] = wanted["envFrom"]
    if wanted.get("volumeMounts"):
        merged["volumeMounts"] = [*container["volumeMounts"], *wanted["volumeMounts"]]
    if claims := (wanted.get("resources") or {}).get("claims"):
        merged["resources"] = {**container["resources"], "claims": claims}
    return merged


def _confined(container: Mapping[str, Any]) -> dict[str, Any]:
    """A container of the user's, which fits Pod Security `restricted` as the others do."""
    return {**container, "securityContext": {**SIDECAR_SECURITY, **(container.get("securityContext") or {})}}


def _affinity(own: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The user's besides the operator's: the terms of both count (`antiAffinity: None` takes the operator's out)."""
    merged = {**own, **wanted}
    for kind in own.keys() & wanted.keys():
        terms = {**own[kind], **wanted[kind]}
        for when in own[kind].keys() & wanted[kind].keys():
            terms[when] = [*own[kind][when], *wanted[kind][when]]
        merged[kind] = terms
    return merged


def _spread(constraint: Mapping[str, Any], selector: Mapping[str, str]) -> dict[str, Any]:
    """The constraint; one that names no pods is about those of this model, each ReplicaSet for itself."""
    if "labelSelector" in constraint:
        return dict(constraint)
    return {"labelSelector": {"matchLabels": dict(selector)}, "matchLabelKeys": ["pod-template-hash"], **constraint}

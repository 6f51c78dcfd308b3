"""Whether a pod of one template can load another revision in place. Pure.

It can where the two templates differ in nothing but the revision they name: then a pod of the one, given the other's
model.json, is as good as a pod of the other. Everything a template holds counts: claim, image, resources, volumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cosyvoice_operator import names

_OF_THE_REVISION = (names.LABEL_REVISION, names.LABEL_VERSION, names.LABEL_APP_VERSION)
_MISSING = object()


def obstacle(carrier: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """Why a pod of the template `carrier` cannot take the revision of `wanted`; None where it can."""
    if not has_stager(carrier):
        return f"its pods have no container {names.STAGER_CONTAINER}: they were made for rolling updates only"
    place = _difference(_neutral(carrier), _neutral(wanted), "")
    return None if place is None else f"its pod template differs in {place.lstrip('.')}"


def has_stager(template: Mapping[str, Any]) -> bool:
    """Whether pods of `template` can stage another version while they serve."""
    containers = (template.get("spec") or {}).get("initContainers") or ()
    return any(container.get("name") == names.STAGER_CONTAINER for container in containers)


def reads_live(template: Mapping[str, Any]) -> bool:
    """Whether pods of `template` see its live ConfigMap: those of an earlier release do not."""
    volumes = (template.get("spec") or {}).get("volumes") or ()
    return any(volume.get("name") == names.CONFIG_VOLUME and "projected" in volume for volume in volumes)


def _neutral(template: Mapping[str, Any]) -> dict[str, Any]:
    """The template without what only names its revision: three labels, and the ConfigMaps of its configuration."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name not in _OF_THE_REVISION}
    volumes = [_unnamed(volume) for volume in spec.get("volumes") or ()]
    return {"metadata": {**metadata, "labels": labels}, "spec": {**spec, "volumes": volumes}}


def _unnamed(volume: Mapping[str, Any]) -> Mapping[str, Any]:
    """The volume; the configuration's without the names of the ConfigMaps that it is projected from."""
    if volume.get("name") != names.CONFIG_VOLUME or "projected" not in volume:
        return volume
    sources = [
        {**source, "configMap": {**source["configMap"], "name": None}} if "configMap" in source else source
        for source in volume["projected"].get("sources") or ()
    ]
    return {**volume, "projected": {**volume["projected"], "sources": sources}}


def _difference(left: object, right: object, place: str) -> str | None:
    """The first place where the two differ, as in spec.containers[0].image."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        pairs = [(f"{place}.{name}", left.get(name, _MISSING), right.get(name, _MISSING)) for name in {**left, **right}]
    elif isinstance(left, Sequence) and isinstance(right, Sequence) and not isinstance(left, str):
        if len(left) != len(right):
            return place
        pairs = [(f"{place}[{index}]", *both) for index, both in enumerate(zip(left, right, strict=True))]
    else:
        return None if type(left) is type(right) and left == right else place
    return next((found for name, one, other in pairs if (found := _difference(one, other, name)) is not None), None)

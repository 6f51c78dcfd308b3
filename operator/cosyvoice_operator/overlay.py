"""What a user may lay over the pod template, and what stays the operator's. Pure.

The overlay adds to the pod; it takes nothing away and never takes the pod out of Pod Security `restricted`: who may
write a CosyVoiceModel gets through the operator no right over a node that the namespace would not give them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

from cosyvoice_operator import names
from cosyvoice_operator.api_spec import PodTemplate
from cosyvoice_operator.errors import InvalidSpecError

FIELD = "spec.worker.podTemplate"
RESERVED_VOLUMES = frozenset({"source", "weights", names.CONFIG_VOLUME, "voices", "tmp", "api-keys"})
OWN_CONTAINERS = frozenset({names.WORKER_CONTAINER, names.STAGE_CONTAINER})

_POD_FIELDS = frozenset(
    {
        *("affinity", "topologySpreadConstraints", "schedulerName", "resourceClaims", "volumes"),
        *("containers", "initContainers", "hostAliases", "dnsPolicy", "dnsConfig"),
    }
)
_FIELDS_OF_THE_WORKER = frozenset(
    {
        *("nodeSelector", "tolerations", "runtimeClassName", "priorityClassName"),
        *("serviceAccountName", "imagePullSecrets"),
    }
)
_OWN_CONTAINER_FIELDS = frozenset({"name", "env", "envFrom", "volumeMounts"})
_RESTRICTED_VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
        *("persistentVolumeClaim", "projected", "secret"),
    }
)
_SECURITY_FIELDS = frozenset({"runAsUser", "runAsGroup", "runAsNonRoot", "readOnlyRootFilesystem"})
_OWN_PATHS = (
    *(names.CONFIG_DIRECTORY, names.WEIGHTS_ROOT, names.SOURCE_ROOT, names.TEMPORARY_DIRECTORY),
    *("/dev/termination-log", "/sys/fs/cgroup"),
)
_OWN_PORTS = frozenset({names.API_PORT, names.ADMIN_PORT})
# Names by which Kubernetes and the operator find the pods.
_RESERVED_PREFIXES = (f"{names.GROUP}/", "app.kubernetes.io/")
_RESERVED_LABELS = frozenset({"pod-template-hash"})
# By which pods were taken out of AppArmor before there was a field for it.
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_REQUIRED, _PREFERRED = (f"{when}DuringSchedulingIgnoredDuringExecution" for when in ("required", "preferred"))
_AFFINITY: Mapping[str, Mapping[str, type]] = {
    "nodeAffinity": {_REQUIRED: dict, _PREFERRED: list},
    "podAffinity": {_REQUIRED: list, _PREFERRED: list},
    "podAntiAffinity": {_REQUIRED: list, _PREFERRED: list},
}
_CHECKS = ("httpGet", "tcpSocket")


def check(overlay: PodTemplate) -> None:
    """Raise InvalidSpecError, naming the field, for anything that may not be laid over the pod."""
    for kind, entries in (("labels", overlay.metadata.labels), ("annotations", overlay.metadata.annotations)):
        for name in entries:
            if name.startswith(_RESERVED_PREFIXES) or name in _RESERVED_LABELS:
                raise _refusal(f"metadata.{kind}[{name}]", "the operator finds its pods by it: choose another name")
            if name.startswith(_APPARMOR):
                raise _refusal(f"metadata.{kind}[{name}]", "Pod Security restricted has its own say on AppArmor")
    _check_pod_fields(overlay.spec)
    _check_affinity(overlay.spec.get("affinity"))
    for volume in overlay.spec.get("volumes") or ():
        _check_volume(volume)
    volumes = {volume["name"] for volume in overlay.spec.get("volumes") or ()}
    for kind in ("containers", "initContainers"):
        for container in overlay.spec.get(kind) or ():
            _check_container(kind, container, volumes)


def claims_devices(overlay: PodTemplate) -> bool:
    """Whether the pod gets its devices by resource claims (DRA), so that no GPU is asked for besides."""
    return bool(overlay.spec.get("resourceClaims"))


def _check_pod_fields(spec: Mapping[str, Any]) -> None:
    for name in spec:
        if name in _FIELDS_OF_THE_WORKER:
            raise _refusal(f"spec.{name}", f"set spec.worker.{name} instead")
        if name not in _POD_FIELDS:
            raise _refusal(f"spec.{name}", f"may not be changed; what may: {_listed(_POD_FIELDS)}")


def _check_affinity(affinity: object) -> None:
    """Its shape, as far as it is merged with the operator's own: the CRD leaves it open."""
    if affinity is None:
        return
    if not isinstance(affinity, Mapping):
        raise _refusal("spec.affinity", "expected an object")
    for kind, terms in affinity.items():
        if kind not in _AFFINITY or not isinstance(terms, Mapping):
            raise _refusal(f"spec.affinity.{kind}", f"expected an object, of one of {_listed(_AFFINITY)}")
        for when, value in terms.items():
            wanted = _AFFINITY[kind].get(when)
            if wanted is None:
                raise _refusal(f"spec.affinity.{kind}.{when}", f"no such field; there are {_listed(_AFFINITY[kind])}")
            if not isinstance(value, wanted):
                what = "a list" if wanted is list else "an object"
                raise _refusal(f"spec.affinity.{kind}.{when}", f"expected {what}")


def _check_volume(volume: Mapping[str, Any]) -> None:
    where = f"spec.volumes[{volume['name']}]"
    if volume["name"] in RESERVED_VOLUMES:
        raise _refusal(
            where, f"the operator has a volume of this name: choose another than {_listed(RESERVED_VOLUMES)}"
        )
    for kind in volume.keys() - {"name"} - _RESTRICTED_VOLUMES:
        raise _refusal(f"{where}.{kind}", f"Pod Security restricted allows only {_listed(_RESTRICTED_VOLUMES)}")
    for source in (volume.get("projected") or {}).get("sources") or ():
        if "serviceAccountToken" in source:
            raise _refusal(f"{where}.projected", "no container of a model's pod gets a service account's token")


def _check_container(kind: str, container: Mapping[str, Any], volumes: Iterable[str]) -> None:
    name = container["name"]
    where = f"spec.{kind}[{name}]"
    if name == names.STAGER_CONTAINER:
        raise _refusal(where, f"it gets what {names.STAGE_CONTAINER} gets: name that")
    own = name in OWN_CONTAINERS
    if own and (name == names.WORKER_CONTAINER) != (kind == "containers"):
        raise _refusal(
            where, f"{names.WORKER_CONTAINER} is one of containers, {names.STAGE_CONTAINER} of initContainers"
        )
    if own:
        _check_own_container(where, container)
    else:
        _check_other_container(where, container)
    for mount in container.get("volumeMounts") or ():
        here = f"{where}.volumeMounts[{mount['mountPath']}]"
        if mount["name"] not in volumes:
            raise _refusal(here, f"there is no volume {mount['name']!r} in {FIELD}.spec.volumes; others are not shared")
        if own and any(_overlap(mount["mountPath"], path) for path in _OWN_PATHS):
            raise _refusal(here, f"is in the way of the operator's own mounts: {', '.join(_OWN_PATHS)}")


def _check_own_container(where: str, container: Mapping[str, Any]) -> None:
    for field in container.keys() - _OWN_CONTAINER_FIELDS:
        if field == "resources" and container["name"] == names.WORKER_CONTAINER:
            if other := container[field].keys() - {"claims"}:
                raise _refusal(f"{where}.resources", f"set spec.worker.resources for {_listed(other)}; claims go here")
        elif field in {"image", "resources"}:
            raise _refusal(f"{where}.{field}", f"set spec.worker.{field} instead")
        else:
            raise _refusal(f"{where}.{field}", f"may not be changed; what may: {_listed(_OWN_CONTAINER_FIELDS)}")


def _check_other_container(where: str, container: Mapping[str, Any]) -> None:
    if not container.get("image"):
        raise _refusal(f"{where}.image", "a container of your own needs an image")
    security = container.get("securityContext") or {}
    for field in security.keys() - _SECURITY_FIELDS:
        raise _refusal(f"{where}.securityContext.{field}", f"may not be set; what may: {_listed(_SECURITY_FIELDS)}")
    if security.get("runAsUser") == 0 or security.get("runAsNonRoot") is False:
        raise _refusal(f"{where}.securityContext", "Pod Security restricted lets nothing run as root")
    handlers = [container.get(name) or {} for name in ("livenessProbe", "readinessProbe", "startupProbe")]
    handlers += [found or {} for found in (container.get("lifecycle") or {}).values()]
    for handler in handlers:
        if any((handler.get(kind) or {}).get("host") for kind in _CHECKS):
            raise _refusal(where, "a probe's host makes the kubelet ask others from the node's network: leave it out")
    for port in container.get("ports") or ():
        if port.get("hostPort"):
            raise _refusal(f"{where}.ports", "hostPort is a port of the node, which Pod Security restricted forbids")
        if port.get("containerPort") in _OWN_PORTS:
            raise _refusal(f"{where}.ports", f"the worker itself listens on {port['containerPort']}: choose another")


def _overlap(one: str, other: str) -> bool:
    """Whether one of two directories is the other or lies in it."""
    left, right = (f"{posixpath.normpath(path).rstrip('/')}/".replace("//", "/") for path in (one, other))
    return left.startswith(right) or right.startswith(left)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))


def _refusal(where: str, message: str) -> InvalidSpecError:
    return InvalidSpecError(f"{FIELD}.{where}", message)

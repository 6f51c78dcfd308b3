"""Revisions: what makes two specs the same one, and what a spec means once the operator's defaults are filled in.

A revision is everything that decides what a pod runs. Its identity is the hash of what the user set, so scaling,
pausing and an upgrade of the operator never make a new one. The defaults below are resolved once, when a revision is
created, and stored with it: an upgrade never renders an existing revision again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from msgspec.structs import FieldInfo, fields, replace

from cosyvoice_operator import memory_high, overlay, quantity, source
from cosyvoice_operator.api_part import Part
from cosyvoice_operator.api_spec import Recycle, Resources, Spec, Worker
from cosyvoice_operator.errors import InvalidSpecError
from cosyvoice_operator.names import REVISION_SCHEMA
from cosyvoice_operator.quantity import Quantity

IDENTITY_DIGITS = 10
GPU = "nvidia.com/gpu"
WARM_UP_TEXTS = ("Hello, this is a warm-up.",)
SWAPPING_STRATEGIES = frozenset({"Auto", "HotSwap"})
LOAD_TIMEOUT_SECONDS = {"cuda": 120, "cpu": 600}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the operator's configuration contributes to a revision, and what it allows."""

    worker_image: str
    device: str = "cuda"
    stage_memory: Quantity = "5Gi"
    worker_cpu_request: Quantity = "500m"
    worker_memory_request: Quantity = "5Gi"
    worker_memory_limit: Quantity = "8Gi"
    allowed_host_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A spec with every default filled in: all that the rendering of a revision needs."""

    spec: Spec
    source: source.Source
    image: str
    device: str
    load_timeout_seconds: int
    warm_up_texts: tuple[str, ...]
    size_limit: str
    stage_memory: str
    requests: Mapping[str, str]
    limits: Mapping[str, str]
    memory_high: int | None = None  # bytes


def identity(spec: Spec) -> str:
    """The revision that `spec` asks for: the first 10 hex digits of a sha256.

    Equal for specs that mean the same (another spelling of a quantity, a default written out), different otherwise.
    """
    said = _said(_canonical(spec))
    if swaps(spec):
        said["rollout"] = {"hotSwap": True}
    text = json.dumps({"schema": REVISION_SCHEMA, **said}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:IDENTITY_DIGITS]


def swaps(spec: Spec) -> bool:
    """Whether pods of `spec` are made so that they can load another version in place: one container more.

    That is all of `rollout` that a revision holds: between the strategies that swap a change restarts no pod.
    """
    return spec.rollout.strategy in SWAPPING_STRATEGIES


def resolve(spec: Spec, policy: Policy) -> Resolved:
    """Fill in the defaults. Raises InvalidSpecError for what the configuration forbids or what cannot work."""
    where = source.parse(spec.source.uri)
    if not source.is_allowed(where, policy.allowed_host_paths):
        allowed = ", ".join(policy.allowed_host_paths) or "none"
        raise InvalidSpecError(
            source.FIELD,
            f"{spec.source.uri!r} is a directory of the node that the operator does not allow (allowed: {allowed}): "
            "use pvc://CLAIM/PATH, or have the administrator add it with --allow-host-path",
        )
    device = spec.engine.device or policy.device
    if device == "cpu" and spec.engine.dtype == "float16":
        raise InvalidSpecError("spec.engine.dtype", "float16 needs device cuda: on a cpu use auto, float32 or bfloat16")
    overlay.check(spec.worker.pod_template)
    requests, limits = _worker_resources(spec, policy, device)
    high = None if spec.worker.memory_high is None else quantity.to_integer(spec.worker.memory_high)
    if high is not None:
        memory_high.check(
            high, quantity.to_integer(limits["memory"]), memory_high.needs(spec.engine, device, swaps=swaps(spec))
        )
    return Resolved(
        spec=spec,
        source=where,
        image=spec.worker.image or policy.worker_image,
        device=device,
        load_timeout_seconds=spec.engine.load_timeout_seconds or LOAD_TIMEOUT_SECONDS[device],
        warm_up_texts=spec.engine.warm_up.texts or WARM_UP_TEXTS,
        size_limit=quantity.canonical(spec.staging.size_limit),
        stage_memory=_stage_memory(spec, policy),
        requests=requests,
        limits=limits,
        memory_high=high,
    )


def _worker_resources(spec: Spec, policy: Policy, device: str) -> tuple[dict[str, str], dict[str, str]]:
    """Requests and limits of the worker: the user's, the configured ones where the user named none, and a GPU for cuda.

    A default never contradicts the user: with only a limit set, the default request is capped at it, and so on.
    """
    requests = {name: quantity.canonical(value) for name, value in spec.worker.resources.requests.items()}
    limits = {name: quantity.canonical(value) for name, value in spec.worker.resources.limits.items()}
    if "memory" not in limits:
        limits["memory"] = _larger(policy.worker_memory_limit, requests.get("memory", "0"))
    if "memory" not in requests:
        requests["memory"] = _smaller(policy.worker_memory_request, limits["memory"])
    if "cpu" not in requests:
        requests["cpu"] = _smaller(policy.worker_cpu_request, limits.get("cpu", policy.worker_cpu_request))
    extended = any(_is_extended(name) for name in (*requests, *limits))
    if device == "cuda" and not extended and not overlay.claims_devices(spec.worker.pod_template):
        limits[GPU] = "1"
    return requests, limits


def _stage_memory(spec: Spec, policy: Policy) -> str:
    """Memory of `stage`, request and limit alike. What it copies is charged to it: no less than the user requests."""
    return _larger(policy.stage_memory, spec.worker.resources.requests.get("memory", "0"))


def _is_extended(resource: str) -> bool:
    """Whether a resource is a device: a domain of its own, as in nvidia.com/gpu."""
    return "/" in resource and not resource.startswith("kubernetes.io/")


def _larger(left: Quantity, right: Quantity) -> str:
    return quantity.canonical(max(left, right, key=quantity.parse))


def _smaller(left: Quantity, right: Quantity) -> str:
    return quantity.canonical(min(left, right, key=quantity.parse))


def _canonical(spec: Spec) -> Spec:
    """What of the spec belongs to a revision, every quantity in its one spelling, everything else at its default."""
    resources, high = spec.worker.resources, spec.worker.memory_high
    return Spec(
        version=spec.version,
        source=spec.source,
        access=spec.access,
        engine=replace(spec.engine, recycle=_canonical_recycle(spec.engine.recycle)),
        staging=replace(spec.staging, size_limit=quantity.canonical(spec.staging.size_limit)),
        worker=replace(
            spec.worker,
            replicas=Worker().replicas,
            memory_high=None if high is None else quantity.canonical(high),
            resources=Resources(
                requests={name: quantity.canonical(value) for name, value in resources.requests.items()},
                limits={name: quantity.canonical(value) for name, value in resources.limits.items()},
            ),
        ),
    )


def _canonical_recycle(recycle: Recycle) -> Recycle:
    growth = recycle.max_memory_growth
    return recycle if growth is None else replace(recycle, max_memory_growth=quantity.canonical(growth))


def _said(part: Part) -> dict[str, Any]:
    """What the user set, by the names on the wire. A field at its default counts as not set, and so does an empty part.

    So a field that a later version adds, with a default, changes no identity.
    """
    said: dict[str, Any] = {}
    for field in _fields(type(part)):
        value = getattr(part, field.name)
        if isinstance(value, Part):
            if inner := _said(value):
                said[field.encode_name] = inner
        elif field.required or value != field.default:
            said[field.encode_name] = value
    return {name: value for name, value in said.items() if value not in ({}, ())}


@cache
def _fields(part: type[Part]) -> tuple[FieldInfo, ...]:
    """The fields of a part. They never change, and looking them up each time would cost half of a whole pass."""
    return fields(part)

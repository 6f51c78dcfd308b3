"""A CosyVoiceModel as values: who it is, what the user asked for, and what the operator last wrote into its status."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from cosyvoice_operator import names, quantity
from cosyvoice_operator.api_spec import Spec
from cosyvoice_operator.api_status import Status, parse_status
from cosyvoice_operator.errors import InvalidQuantityError, InvalidSpecError
from cosyvoice_operator.quantity import Quantity

MAX_ANNOTATION = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which object: enough to own children and to say whose event it is."""

    namespace: str
    name: str
    uid: str
    generation: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One CosyVoiceModel."""

    identity: Identity
    spec: Spec
    status: Status
    retry: str | None = None  # the annotation of the same name
    rollback_to: str | None = None  # the annotation of the same name

    @property
    def namespace(self) -> str:
        return self.identity.namespace

    @property
    def name(self) -> str:
        return self.identity.name


def parse_identity(raw: Mapping[str, Any]) -> Identity:
    """Whose object this is."""
    metadata = raw["metadata"]
    return Identity(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
    )


def parse(raw: Mapping[str, Any]) -> Model:
    """A CosyVoiceModel as the API server returned it. Raises InvalidSpecError where the installed CRD was too lax."""
    try:
        spec = msgspec.convert(raw.get("spec") or {}, Spec)
    except msgspec.ValidationError as error:
        raise InvalidSpecError("spec", f"{error}. Is the installed CRD older or newer than the operator?") from error
    _check_quantities(spec)
    annotations = raw["metadata"].get("annotations") or {}
    return Model(
        identity=parse_identity(raw),
        spec=spec,
        status=parse_status(raw),
        retry=_brief(annotations.get(names.ANNOTATION_RETRY)),
        rollback_to=_brief(annotations.get(names.ANNOTATION_ROLLBACK_TO)),
    )


def _brief(annotation: str | None) -> str | None:
    """The annotation's value, which the status repeats for every version in quarantine: 256 KiB of it have no room.

    Different values stay different.
    """
    if not annotation or len(annotation) <= MAX_ANNOTATION:
        return annotation or None
    return f"sha256:{hashlib.sha256(annotation.encode()).hexdigest()}"


def _check_quantities(spec: Spec) -> None:
    """The CRD's pattern lets numbers through that no machine has the memory for, and that nobody gives back as sent."""
    asked: dict[str, Quantity] = {"spec.staging.sizeLimit": spec.staging.size_limit}
    for kind, resources in (("requests", spec.worker.resources.requests), ("limits", spec.worker.resources.limits)):
        asked |= {f"spec.worker.resources.{kind}[{name}]": value for name, value in resources.items()}
    if spec.worker.memory_high is not None:
        asked["spec.worker.memoryHigh"] = spec.worker.memory_high
    growth = spec.engine.recycle.max_memory_growth
    if growth is not None:
        asked["spec.engine.recycle.maxMemoryGrowth"] = growth
    for field, value in asked.items():
        try:
            parsed = quantity.parse(value)
        except InvalidQuantityError as error:
            raise InvalidSpecError(field, str(error)) from error
        if field.startswith("spec.engine.recycle") and parsed <= 0:
            raise InvalidSpecError(field, f"{value!r} is no growth: leave it out for an engine that is never recycled")
        if parsed > quantity.LARGEST:
            raise InvalidSpecError(field, f"{value!r} is more than {quantity.LARGEST}, the largest quantity there is")

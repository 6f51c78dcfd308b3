"""A CosyVoiceModel as values: what the user asked for, and what the operator last wrote into its status.

The schema, defaults and rules are in crds/cosyvoicemodels.yaml; the API server enforces them before the operator sees
an object. The defaults stand here too, because a revision's identity leaves out every field that has its default
(see `revision`): they belong to `schema: 1` and never change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from cosyvoice_operator.errors import InvalidSpecError
from cosyvoice_operator.quantity import Quantity


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of every part of a CosyVoiceModel; the field names on the wire are the camelCase of the ones here."""


# ----- spec -----------------------------------------------------------------------------------------------------------


class Source(Part, frozen=True):
    """Where the weights come from, and optionally the sha256 they must have."""

    uri: str
    digest: str | None = None


class Staging(Part, frozen=True):
    """How the weights get into the pod's memory; `size_limit` is the tmpfs's size."""

    medium: str = "Pod"
    size_limit: Quantity = "8Gi"
    verify: str = "Once"


class WarmUp(Part, frozen=True):
    """What an engine says before it is ready: `texts` in `voice`, at most `max_seconds` of audio each."""

    texts: tuple[str, ...] = ()
    voice: str | None = None
    max_seconds: float = 1.0


class Engine(Part, frozen=True):
    """How the model runs. None: the operator's configuration decides when a revision is created."""

    device: str | None = None
    dtype: str = "auto"
    load_timeout_seconds: int | None = None
    preload: bool = True
    fallback_to_cpu: bool = msgspec.field(default=False, name="fallbackToCPU")
    warm_up: WarmUp = WarmUp()


class Resources(Part, frozen=True):
    """Requests and limits of the worker container, by resource name."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}


class Worker(Part, frozen=True):
    """The pods. The dicts are fragments of a pod as Kubernetes spells them."""

    replicas: int = 2
    image: str | None = None
    resources: Resources = Resources()
    node_selector: dict[str, str] = {}
    tolerations: tuple[dict[str, Any], ...] = ()
    runtime_class_name: str | None = None
    priority_class_name: str | None = None
    service_account_name: str | None = None
    image_pull_secrets: tuple[dict[str, Any], ...] = ()
    env: tuple[dict[str, Any], ...] = ()
    anti_affinity: str = "Preferred"


class Rollout(Part, frozen=True):
    """How a new revision replaces the old one."""

    strategy: str = "RollingUpdate"
    progress_deadline_seconds: int = 600
    history_limit: int = 5


class Service(Part, frozen=True):
    """How the model is reached."""

    type: str = "ClusterIP"
    port: int = 80
    annotations: dict[str, str] = {}


class Spec(Part, frozen=True):
    """What the user asked for."""

    version: str
    source: Source
    staging: Staging = Staging()
    engine: Engine = Engine()
    worker: Worker = Worker()
    rollout: Rollout = Rollout()
    service: Service = Service()
    paused: bool = False


# ----- status ---------------------------------------------------------------------------------------------------------


class Condition(Part, frozen=True):
    """One of `conditions`, as in metav1.Condition."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int
    last_transition_time: str


class Staged(Part, frozen=True):
    """What `stage` reported of `revision`: the digest, bytes and seconds of one pod's staging."""

    revision: str
    digest: str | None = None
    bytes: int | None = None
    seconds: float | None = None
    pod: str | None = None
    node: str | None = None


class Load(Part, frozen=True):
    """Where the seconds of one pod of `revision` went, from its creation to Ready (`total`)."""

    revision: str
    pod: str
    schedule: float | None = None
    stage: float | None = None
    import_: float | None = msgspec.field(default=None, name="import")
    map: float | None = None
    build: float | None = None
    warm_up: float | None = None
    total: float | None = None


class FailureRecord(Part, frozen=True):
    """One failure of a revision, kept after the revision is gone."""

    revision: str
    version: str
    reason: str
    message: str
    file: str | None = None
    tensor: str | None = None
    expected: str | None = None
    actual: str | None = None
    pod: str | None = None
    node: str | None = None
    time: str | None = None


class Status(Part, frozen=True):
    """What the operator last wrote. Every decision can be recovered from it after a crash."""

    observed_generation: int = 0
    active_version: str | None = None
    active_revision: str | None = None
    target_version: str | None = None
    target_revision: str | None = None
    last_good_revision: str | None = None
    replicas: int | None = None
    ready_replicas: int | None = None
    ready: str | None = None
    reason: str | None = None
    message: str | None = None
    selector: str | None = None
    staged: Staged | None = None
    load: Load | None = None
    failures: tuple[FailureRecord, ...] = ()
    conditions: tuple[Condition, ...] = ()

    def condition(self, type: str) -> Condition | None:  # noqa: A002 - the field's own name
        """The condition of this type, if it was ever set."""
        return next((condition for condition in self.conditions if condition.type == type), None)

    def is_true(self, type: str) -> bool:  # noqa: A002 - the field's own name
        """Whether the condition of this type stands at True."""
        condition = self.condition(type)
        return condition is not None and condition.status == "True"


# ----- the object -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which object: enough to own children and to say whose event it is."""

    namespace: str
    name: str
    uid: str
    generation: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One CosyVoiceModel. `deleting`: the user deleted it; its children go through their owner references."""

    identity: Identity
    spec: Spec
    status: Status
    deleting: bool = False

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


def parse_status(raw: Mapping[str, Any]) -> Status:
    """The status as last written; an empty one where it is absent or not ours (someone wrote into it by hand)."""
    try:
        return msgspec.convert(raw.get("status") or {}, Status)
    except msgspec.ValidationError:
        return Status()


def parse(raw: Mapping[str, Any]) -> Model:
    """A CosyVoiceModel as the API server returned it. Raises InvalidSpecError where the installed CRD was too lax."""
    try:
        spec = msgspec.convert(raw.get("spec") or {}, Spec)
    except msgspec.ValidationError as error:
        raise InvalidSpecError("spec", f"{error}. Is the installed CRD older or newer than the operator?") from error
    return Model(
        identity=parse_identity(raw),
        spec=spec,
        status=parse_status(raw),
        deleting="deletionTimestamp" in raw["metadata"],
    )


def encode_status(status: Status) -> dict[str, Any]:
    """The status as the API server takes it; absent values are left out."""
    encoded: dict[str, Any] = msgspec.to_builtins(status, str_keys=True)
    return encoded

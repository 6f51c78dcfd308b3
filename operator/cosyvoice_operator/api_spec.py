"""What the user asked for.

The schema, defaults and rules are in crds/cosyvoicemodels.yaml; the API server enforces them before the operator sees
an object. The defaults stand here too, because a revision's identity leaves out every field that has its default
(see `revision`): they belong to `schema: 1` and never change.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cosyvoice_operator.api_part import Part
from cosyvoice_operator.quantity import Quantity


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


class Recycle(Part, frozen=True):
    """When a fresh engine takes over: after so many requests, or after so much growth of the engine's memory."""

    max_requests: int | None = None
    max_memory_growth: Quantity | None = None


class Engine(Part, frozen=True):
    """How the model runs. None: the operator's configuration decides when a revision is created."""

    device: str | None = None
    dtype: str = "auto"
    load_timeout_seconds: int | None = None
    preload: bool = True
    fallback_to_cpu: bool = msgspec.field(default=False, name="fallbackToCPU")
    warm_up: WarmUp = WarmUp()
    recycle: Recycle = Recycle()


class Resources(Part, frozen=True):
    """Requests and limits of the worker container, by resource name."""

    requests: dict[str, Quantity] = msgspec.field(default_factory=dict)
    limits: dict[str, Quantity] = msgspec.field(default_factory=dict)


class PodMetadata(Part, frozen=True):
    """Labels and annotations of the pods, besides the operator's."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class PodTemplate(Part, frozen=True):
    """What is laid over the pod template; `spec` is a fragment of a pod's, which `overlay.check` looks through."""

    metadata: PodMetadata = PodMetadata()
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


class Worker(Part, frozen=True):
    """The pods. The dicts are fragments of a pod as Kubernetes spells them."""

    replicas: int = 2
    image: str | None = None
    resources: Resources = Resources()
    memory_high: Quantity | None = None
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    tolerations: tuple[dict[str, Any], ...] = ()
    runtime_class_name: str | None = None
    priority_class_name: str | None = None
    service_account_name: str | None = None
    image_pull_secrets: tuple[dict[str, Any], ...] = ()
    env: tuple[dict[str, Any], ...] = ()
    anti_affinity: str = "Preferred"
    pod_template: PodTemplate = PodTemplate()


class Rollout(Part, frozen=True):
    """How a new revision replaces the old one."""

    strategy: str = "RollingUpdate"
    automatic_rollback: bool = True
    on_no_capacity: str = "Wait"
    progress_deadline_seconds: int = 600
    history_limit: int = 5


class Service(Part, frozen=True):
    """How the model is reached."""

    type: str = "ClusterIP"
    port: int = 80
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Access(Part, frozen=True):
    """Who may use the API. None: whoever reaches it."""

    api_keys_secret: str | None = None


class Spec(Part, frozen=True):
    """What the user asked for."""

    version: str
    source: Source
    staging: Staging = Staging()
    engine: Engine = Engine()
    worker: Worker = Worker()
    rollout: Rollout = Rollout()
    service: Service = Service()
    access: Access = Access()
    paused: bool = False

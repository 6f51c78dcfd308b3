"""What one pass saw of a model in the cluster, as values. `observe` reads them out of what the API server returned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cosyvoice_operator.termination import Termination

EVICTED = "Evicted"  # the kubelet's word for a pod that it ends because it or its node lacks memory or storage


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRevision:
    """A revision's ConfigMap of ours: the rendered pod template, to be applied as it stands."""

    revision: str
    version: str
    created: datetime
    template: Mapping[str, Any] = field(repr=False, default_factory=dict)
    outcome: str | None = None  # as the history's labels tell it: how the revision did, and what its weights are
    digest: str | None = None
    pin: str | None = None  # the digest that its weights are held to
    config: str = field(repr=False, default="")  # model.json


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A template's live ConfigMap: the revisions of the documents in it.

    `current` is what any pod of the template loads when it starts, `candidate` what one of them is to try. `pins` has
    the digest that each document holds its weights to.
    """

    template: str
    current: str
    candidate: str | None = None
    pins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The Deployment. `replicas` is what it wants; `total` what there is, old pods included.

    `revision` is what its pods load. `template` is the revision whose pod template it has, where that is another one:
    its pods then load another revision in place.
    """

    revision: str | None
    replicas: int
    total: int = 0
    updated: int = 0
    ready: int = 0
    available: int = 0
    settled: bool = True  # the Deployment controller has seen its newest generation
    autoscaled: bool = False  # another manager set `replicas` through the scale subresource
    deadline_exceeded: bool = False
    create_failure: str | None = None  # why the ReplicaSet cannot create pods: quota, Pod Security, a webhook
    create_failure_since: datetime | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)  # of its pod template, whoever set them
    template: str | None = None
    pod_template: Mapping[str, Any] = field(repr=False, default_factory=dict)  # as it stands

    @property
    def carrier(self) -> str | None:
        """The revision whose pod template it has."""
        return self.template or self.revision

    def carries(self, revision: str) -> bool:
        """Whether all that is said here is about `revision`: the controller has seen that it is to run."""
        return self.settled and self.revision == revision


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSet:
    """One ReplicaSet of the Deployment: how many pods it wants, and the annotations of its template.

    `revision` and `template` are as in Workload.
    """

    revision: str
    replicas: int
    annotations: Mapping[str, str] = field(default_factory=dict)
    template: str | None = None

    @property
    def carrier(self) -> str:
        """The revision whose pod template it has."""
        return self.template or self.revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a container ended."""

    exit_code: int
    reason: str = "Error"  # the kubelet's word: Error, OOMKilled, Completed, ...
    finished_at: datetime | None = None
    said: Termination = field(default_factory=Termination)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container of a pod. `ended` is its latest end, also when it runs again or waits to."""

    running: bool = False
    waiting_reason: str | None = None
    waiting_message: str | None = None
    restarts: int = 0
    ended: Ended | None = None

    @property
    def succeeded(self) -> bool:
        return not self.running and self.ended is not None and self.ended.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """How far a worker is with the latest order to load another revision in place.

    `order` is without its nonce. `room`: it failed for want of memory that others take, so the version is not to blame.
    """

    order: str
    state: str  # Staging, Loading, Switched, Failed
    phase: str | None = None
    room: bool = False
    failure: Termination = field(default_factory=Termination)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHigh:
    """What a worker reads back of memory.high, in bytes; `route` and `reason` are in the worker's words."""

    wanted: int
    state: str  # Applied, NotApplied, Unknown
    applied: int | None = None
    route: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """What a worker answered on its admin port, cleaned. `load` is seconds by phase, in the worker's words.

    `revision`, `digest` and what was `staged_` are those of the engine that serves now; None where the worker does not
    say.
    """

    phase: str
    load: Mapping[str, float] = field(default_factory=dict)
    revision: str | None = None
    digest: str | None = None
    staged_bytes: int | None = None
    staged_seconds: float | None = None
    swap: Swap | None = None
    memory_high: MemoryHigh | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod of the model's Deployment that is not being deleted.

    `revision` is what it serves, or what it loads as far as is known; `template` is as in Workload.
    """

    name: str
    revision: str
    created: datetime
    version: str = ""
    node: str | None = None
    address: str | None = None
    scheduled: datetime | None = None
    unschedulable: str | None = None  # the scheduler's words
    lost: str | None = None  # why the pod failed as a whole: evicted, preempted, its node shut down
    lost_message: str = ""
    node_down: str | None = None  # why its node is not ready
    ready: bool = False
    ready_since: datetime | None = None
    unready_since: datetime | None = None
    stage: Container = Container()
    worker: Container = Container()
    others: tuple[tuple[str, Container], ...] = ()  # by name: those that a user or the cluster added
    mount_failure: str | None = None  # the kubelet's words
    order: str | None = None  # the revision it was last told to load in place, as in names.ANNOTATION_SWAP
    status: WorkerStatus | None = None
    template: str | None = None

    @property
    def carrier(self) -> str:
        """The revision whose pod template it was made of."""
        return self.template or self.revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The PersistentVolumeClaim of the source. `access_modes` is empty where it does not exist."""

    name: str
    exists: bool
    access_modes: tuple[str, ...] = ()

    @property
    def exclusive(self) -> bool:
        """Whether its volume can be mounted on one node only."""
        return self.exists and not {"ReadOnlyMany", "ReadWriteMany"} & set(self.access_modes)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameConflict:
    """An object under one of our names that our model does not own. `going`: it is about to be collected."""

    kind: str
    namespace: str
    name: str
    going: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything a pass knows about one model's children."""

    revisions: tuple[StoredRevision, ...] = ()
    lives: tuple[Live, ...] = ()
    workload: Workload | None = None
    replica_sets: tuple[ReplicaSet, ...] = ()
    pods: tuple[Pod, ...] = ()
    claim: Claim | None = None
    conflicts: tuple[NameConflict, ...] = ()
    refusal: str | None = None  # why the API server refused what this model's spec makes us apply

    @property
    def scaled_revisions(self) -> frozenset[str]:
        """The revisions of ReplicaSets that still want pods."""
        return frozenset(found.revision for found in self.replica_sets if found.replicas > 0)

    def carries(self, revision: str | None) -> bool:
        """Whether the Deployment has the template of `revision`."""
        return self.workload is not None and revision is not None and self.workload.revision == revision

    @property
    def wants_pods(self) -> bool:
        """Whether the Deployment wants any pod: with none, nothing is proven."""
        return self.workload is not None and self.workload.replicas > 0

    def has_pods(self, revision: str) -> bool:
        """Whether a pod of `revision` is there that could still run."""
        return any(pod.revision == revision and not pod.lost for pod in self.pods)

    def stored(self, revision: str | None) -> StoredRevision | None:
        """The revision's ConfigMap, if there is one."""
        return next((stored for stored in self.revisions if stored.revision == revision), None)

    def live(self, template: str | None) -> Live | None:
        """The template's live ConfigMap, if there is one."""
        return next((live for live in self.lives if live.template == template), None)

    def loads(self, template: str) -> str:
        """The revision that a pod of `template` loads when it starts."""
        live = self.live(template)
        return template if live is None else live.current

    def pods_of(self, revision: str) -> tuple[Pod, ...]:
        """The revision's pods. One that failed as a whole counts only as long as it has not been replaced."""
        pods = [pod for pod in self.pods if pod.revision == revision]
        alive = [pod for pod in pods if not pod.lost]
        replaced = self.workload is not None and len(alive) >= self.workload.replicas
        return tuple(alive if replaced else pods)

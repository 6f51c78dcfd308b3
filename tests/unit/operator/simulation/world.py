"""A small Kubernetes in memory, with the operator in it, on a clock of its own."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from cosyvoice_operator import names
from tests.unit.operator.simulation.broken import BrokenInvariantError
from tests.unit.operator.simulation.deployments import Deployments, ready_since
from tests.unit.operator.simulation.fake_cluster import FakeCluster, Witness
from tests.unit.operator.simulation.fates import Fate
from tests.unit.operator.simulation.kubelet import Kubelets
from tests.unit.operator.simulation.operator_process import OperatorProcess
from tests.unit.operator.simulation.store import MODEL, NAMESPACE, Object, Store

START = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
MOST_PASSES_AT_ONCE = 40


class Pace(enum.StrEnum):
    """How quick the controllers and kubelets are, against the operator."""

    EAGER = "eager"  # they act between any two of its writes
    QUICK = "quick"  # they are done before its next pass
    LAZY = "lazy"  # it makes several passes before they act


class World:
    """`fates` by version label: one for each pod of it in turn. `witness` is told of everything the operator does.

    `echo` False: the watches do not tell the operator of what it wrote itself.
    """

    def __init__(
        self,
        fates: Iterable[tuple[str, Iterable[str]]],
        witness_of: Callable[[World], Witness],
        *,
        echo: bool = True,
        pace: Pace = Pace.QUICK,
        door: type[FakeCluster] = FakeCluster,
    ) -> None:
        self.now = START
        self.fates: dict[str, tuple[Fate, ...]] = {}
        self.ever: dict[str, set[Fate]] = {}  # every fate that a version ever had
        self.crashes = 0  # that were nobody's fate
        self.changes: list[str] = []  # versions whose source got other bytes
        self.tampered = False  # someone changed the Deployment's template by hand, and no ReplicaSet was made of it yet
        self.lost_revisions: set[str] = set()  # that someone deleted by hand
        self.log: list[tuple[datetime, str]] = []
        self.echo = echo
        self.pace = pace
        self.store = Store(lambda: self.now, self._notify)
        self.deployments = Deployments(self.store, self._new_set)
        self.kubelets = Kubelets(self.store, self._fate, self._digest, self.deployments.kill)
        self.witness = witness_of(self)
        self.cluster = door(self.store, self.witness, self.note, self._written)
        self.operator = OperatorProcess(self.cluster, self.kubelets.worker_answer, lambda: self.now)
        for version, of_pods in fates:
            self.set_fates(version, tuple(map(Fate, of_pods)))

    def set_fates(self, version: str, fates: tuple[Fate, ...]) -> None:
        """From now on the pods of `version` fare so."""
        self.fates[version] = fates
        self.ever.setdefault(version, set()).update(fates)
        self.kubelets.reconsider(version, self.now)

    def note(self, what: str) -> None:
        """Add a line to what is shown of a history that failed."""
        self.log.append((self.now, what))

    def story(self) -> str:
        """Everything that was noted."""
        return "\n".join(f"{(when - START).total_seconds():>8.0f} s  {what}" for when, what in self.log)

    @property
    def model(self) -> Object | None:
        return self.store.get(names.KIND, MODEL)

    def create_model(self, **spec: Any) -> None:
        """The user applies a model."""
        wanted = {"version": "v1", "source": {"uri": "pvc://voices/model"}, **spec}
        metadata = {"namespace": NAMESPACE, "name": MODEL}
        kind = {"apiVersion": names.API_VERSION, "kind": names.KIND}
        self.store.put({**kind, "metadata": metadata, "spec": wanted})
        claim = {"kind": "PersistentVolumeClaim", "metadata": {"namespace": NAMESPACE, "name": "voices"}}
        self.store.put({**claim, "spec": {"accessModes": ["ReadOnlyMany"]}})

    def served(self) -> Iterator[str]:
        """By ready pod: the revision that it serves."""
        for pod in self.store.all("Pod"):
            run = self.kubelets.runs.get(pod["metadata"]["name"])
            if run is not None and run.serves is not None and ready_since(pod) is not None:
                yield run.serves

    async def advance(self, seconds: float) -> None:
        """Let time pass; everything that becomes due in it happens."""
        end = self.now + timedelta(seconds=seconds)
        while True:
            await self.act()
            following = self.next_time()
            if following is None or following > end:
                break
            self.now = following
        self.now = end
        await self.act()

    async def act(self) -> None:
        """Everything that is due now, until nothing is."""
        for _ in range(MOST_PASSES_AT_ONCE):
            is_due = self.operator.next_time() <= self.now
            moved = not (is_due and self.pace is Pace.LAZY) and self._move_all()
            if not is_due and not moved:
                return
            if self.operator.next_time() <= self.now:
                await self.operator.one_pass()
        raise BrokenInvariantError("the operator comes to rest", f"{MOST_PASSES_AT_ONCE} passes at one moment")

    def move(self) -> None:
        """One step of everybody but the operator."""
        self.deployments.step(self.now)
        self.kubelets.step(self.now)

    def _move_all(self) -> bool:
        """Everybody but the operator does all there is to do now. Whether there was anything."""
        first = before = self.store.version
        while True:
            self.move()
            if self.store.version == before:
                return before != first
            before = self.store.version

    def _new_set(self, template: Object, sets: list[Object]) -> None:
        self.witness.on_new_set(template, sets)

    def _written(self) -> None:
        """A write of the operator has just taken effect."""
        if self.pace is Pace.EAGER:
            self._move_all()

    def next_time(self) -> datetime | None:
        """When something happens next."""
        times = [self.deployments.next_time(self.now), self.kubelets.next_time(self.now), self.operator.next_time()]
        return _earliest(times, self.now)

    def next_move(self) -> datetime | None:
        """When something happens next that is not the operator's doing."""
        return _earliest([self.deployments.next_time(self.now), self.kubelets.next_time(self.now)], self.now)

    def _notify(self) -> None:
        if self.echo or not self.cluster.writing:
            self.operator.notify()

    def _digest(self, version: str) -> str:
        """Of what the source of `version` holds now."""
        return f"sha256:{hashlib.sha256(f'{version} {self.changes.count(version)}'.encode()).hexdigest()}"

    def _fate(self, version: str, ordinal: int) -> Fate:
        fates = self.fates.get(version, (Fate.GOOD,))
        return fates[ordinal % len(fates)]


def _earliest(times: Iterable[datetime | None], now: datetime) -> datetime | None:
    return min((time for time in times if time is not None and time > now), default=None)

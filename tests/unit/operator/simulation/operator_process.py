"""The operator as a process in the simulation: the real Reconciler, its queue, and what makes a model due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from cosyvoice_operator.errors import ClusterError
from cosyvoice_operator.gather import Gatherer
from cosyvoice_operator.observed import Pod
from cosyvoice_operator.publish import Publisher
from cosyvoice_operator.reconcile import Reconciler
from cosyvoice_operator.refusals import Refusals
from cosyvoice_operator.revision import Policy
from cosyvoice_operator.workers import Workers
from tests.unit.operator.simulation.fake_cluster import Crash, FakeCluster
from tests.unit.operator.simulation.store import MODEL, NAMESPACE

RESYNC = timedelta(seconds=300)
MOST_PATIENCE = 100.0
FIRST_RETRY, LONGEST_RETRY = timedelta(seconds=1), timedelta(seconds=120)


class Answers:
    """The way to the workers' admin ports."""

    def __init__(self, answer: Callable[[str], bytes | None]) -> None:
        self._answer = answer

    async def fetch(self, _namespace: str, pod: Pod) -> bytes:
        body = self._answer(pod.name)
        if body is None:
            raise OSError("no route to host")
        return body


class OperatorProcess:
    """`due_at` is when the model's next pass begins. Asked to look again where nothing has happened since, it comes
    later each time: a busy operator, and a simulation that ends."""

    def __init__(
        self, cluster: FakeCluster, answer: Callable[[str], bytes | None], clock: Callable[[], datetime]
    ) -> None:
        self._cluster = cluster
        self._answer = answer
        self._clock = clock
        self.deaf_until = clock()
        self.passes = 0
        self.policy = Policy(worker_image="worker:1", device="cpu")
        self.start()

    def start(self, image: str | None = None) -> None:
        """A new process: it remembers nothing, and lists every model first. `image`: another default of its workers."""
        self.policy = replace(self.policy, worker_image=image or self.policy.worker_image)
        cluster, clock = self._cluster, self._clock
        self._reconciler = Reconciler(
            cluster,
            Gatherer(cluster, Workers(Answers(self._answer))),
            Publisher(cluster, clock, "simulated"),
            Refusals(cluster, lambda: clock().timestamp(), RESYNC.total_seconds()),
            self.policy,
            clock=clock,
        )
        self._errors = 0
        self._patience = 1.0
        self.due_at: datetime | None = clock()
        self.resync_at = clock()

    def notify(self) -> None:
        """The watches tell of a change."""
        if self._clock() >= self.deaf_until:
            self.due_at = self._clock()
            self._patience = 1.0

    def next_time(self) -> datetime:
        """When the next pass is due."""
        return self.resync_at if self.due_at is None else min(self.due_at, self.resync_at)

    async def one_pass(self) -> None:
        """One pass, and what comes of it for the next."""
        now = self._clock()
        self.passes += 1
        self.due_at = None
        if self.resync_at <= now:
            self.resync_at = now + RESYNC
        try:
            seconds = await self._reconciler.reconcile((NAMESPACE, MODEL))
        except Crash:
            self.start()
            return
        except ClusterError:
            delay = min(FIRST_RETRY * 2**self._errors, LONGEST_RETRY)
            self._errors += 1
            self.due_at = min(now + delay, self.due_at or now + delay)
            return
        self._errors = 0
        if seconds is not None:
            again = now + timedelta(seconds=seconds * self._patience)
            self._patience = min(3.0 * self._patience, MOST_PATIENCE)
            self.due_at = min(again, self.due_at or again)

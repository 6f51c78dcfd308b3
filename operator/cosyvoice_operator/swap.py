"""Hot swap: the pods of one template load another revision in place, while they serve. Pure.

First one pod tries the revision: it is the live ConfigMap's `candidate`. Once that pod serves it, it is proven and
becomes `current`, so that a pod that restarts never loads what no pod has loaded before. Then the other pods follow,
one after the other. A pod that fails goes on serving what it served, so a failure costs the users nothing.

A revision that served before is proven already: going back to it begins with `current`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cosyvoice_operator import failures, order, progress
from cosyvoice_operator.failures import Failure
from cosyvoice_operator.observed import EVICTED, Observed, Pod, Swap
from cosyvoice_operator.order import Order

RESEND_AFTER = timedelta(seconds=10)  # an order that a pod has not taken up: its kubelet did not look
RETRY_AFTER = timedelta(seconds=5)  # what may pass by itself is given a moment, and each time twice as long
RETRY_AFTER_AT_MOST = timedelta(seconds=60)
ROOM_AFTER = timedelta(seconds=120)  # memory that others take does not come back at once, and the longer the later
ROOM_AFTER_AT_MOST = timedelta(hours=1)

# Progress deadlines: one to stage, one to load and be ready. A worker that does not end both is at fault, no version.
STUCK_AFTER = 2

PROOF = timedelta(seconds=5)  # so long it has to serve: what dies at its first request is not good

STAGING, LOADING, SWITCHED, FAILED = "Staging", "Loading", "Switched", "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Which try of a swap: `number` stands in its orders and is never used again, `tries` have failed before it.

    `serving`: since when the pods that it waits for serve the revision; None where they do not.
    """

    number: int
    started: datetime  # the swap, with its first try; once it is proven, from then on
    tries: int = 0
    serving: datetime | None = None

    @property
    def following(self) -> Attempt:
        """The next try, after this one failed."""
        return replace(self, number=self.number + 1, tries=self.tries + 1, serving=None)

    def proves(self, now: datetime) -> bool:
        """Whether they have served for long enough."""
        return self.serving is not None and now - self.serving >= PROOF


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a swap is for: the pods of `template` are to serve `revision`, which users know as `version`.

    `proven`: it served before. `served`: when last looked at, all pods did serve it, so that one that does not answer
    now is taken to still do. A swap may wait for its source as long as `deadline`.
    """

    template: str
    revision: str
    version: str
    deadline: timedelta
    proven: bool = False
    served: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapStep:
    """What the live ConfigMap has to hold after this pass, the order to give (pod, annotation), and how it goes.

    `room_refused`: a pod has not the memory for a second engine; that is nobody's fault. `silent`: a worker has said
    nothing, or nothing new, for as long as a swap may take, or is still not ready after it. `condemned`: the failures
    count against the revision. `attempt` is the one that the order belongs to: where it differs from the one given, it
    has to be remembered before the order is given.
    """

    current: str
    candidate: str | None
    attempt: Attempt
    reason: str
    message: str
    order: tuple[str, str] | None = None
    done: bool = False
    room_refused: bool = False
    silent: bool = False
    condemned: bool = False
    failures: tuple[Failure, ...] = ()


def plan(observed: Observed, goal: Goal, attempt: Attempt, now: datetime) -> SwapStep:
    """The next step towards `goal`. Equal arguments give the same step; once it is taken, the next one is to wait."""
    run = _Run(goal=goal, attempt=attempt, now=now)
    mine = [pod for pod in observed.pods if pod.carrier == goal.template]
    run = replace(run, evicted=next((pod for pod in mine if _lacked_memory(pod) and run.has_told(pod)), None))
    pods = [pod for pod in mine if not pod.lost]
    current = observed.loads(goal.template)
    if current == goal.revision or goal.proven:
        return _spread(pods, run)
    step = SwapStep(current=current, candidate=goal.revision, attempt=attempt, reason=progress.LOADING, message="")
    pod = next((pod for pod in pods if run.has_told(pod)), None) or next((pod for pod in pods if pod.ready), None)
    if pod is None:
        return replace(step, message=f"waiting for a replica that is ready to try {goal.version} on")
    swap = run.swap_of(pod)
    if swap is not None and swap.state == SWITCHED and run.serves(pod):
        step = replace(step, reason=progress.ROLLING_OUT, message=f"{pod.name} on {pod.node} serves {goal.version}")
        if not attempt.proves(now):
            return replace(step, attempt=replace(attempt, serving=attempt.serving or now))
        return replace(step, current=goal.revision, candidate=None, attempt=replace(attempt, serving=None, started=now))
    return _drive(step, pod, run)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One pass of a swap, and what it makes of a pod. `evicted`: one that its node threw out over this attempt."""

    goal: Goal
    attempt: Attempt
    now: datetime
    evicted: Pod | None = None

    @property
    def waiting(self) -> Attempt:
        """The attempt while not all that it waits for serves the revision."""
        return replace(self.attempt, serving=None)

    @property
    def room_after(self) -> timedelta:
        """How long to wait for memory that others take."""
        return min(max(ROOM_AFTER, self.now - self.attempt.started), ROOM_AFTER_AT_MOST)

    @property
    def elsewhere(self) -> Attempt:
        """The next try, after one that says nothing of the revision."""
        return replace(self.attempt, number=self.attempt.number + 1, serving=None)

    def has_told(self, pod: Pod) -> bool:
        """Whether the pod has the order of this very attempt."""
        told = order.parse(pod.order)
        return told is not None and (told.revision, told.attempt) == (self.goal.revision, self.attempt.number)

    def tell(self, pod: Pod, attempt: Attempt) -> tuple[str, str]:
        """The order to the pod, given now."""
        return pod.name, Order(revision=self.goal.revision, attempt=attempt.number, given=self.now).text

    def since(self, pod: Pod) -> timedelta:
        """How long ago the pod was told. A time to come was not written by this clock: as if long ago."""
        told = order.parse(pod.order)
        if told is None or told.given is None or told.given > self.now:
            return timedelta.max
        return self.now - told.given

    def waited_for(self, pod: Pod) -> timedelta:
        """How long the pod has had to come to serve the revision."""
        return self.since(pod) if self.has_told(pod) else self.now - (pod.unready_since or self.attempt.started)

    def swap_of(self, pod: Pod) -> Swap | None:
        """What the worker says of this very order; None where it has not taken it up, or does not answer."""
        swap = pod.status.swap if pod.status else None
        return swap if swap is not None and swap.order == f"{self.goal.revision}.{self.attempt.number}" else None

    def loads(self, pod: Pod) -> bool:
        """Whether the worker says that it has or begins with the revision."""
        return pod.status is not None and pod.status.revision == self.goal.revision

    def serves(self, pod: Pod) -> bool:
        """Whether the pod is ready besides."""
        return pod.ready and self.loads(pod)

    def is_there(self, pod: Pod) -> bool:
        """Whether nothing is left to do with the pod: it serves the revision, and has no order to load another."""
        told = order.parse(pod.order)
        silent = self.goal.served and pod.ready and pod.status is None
        return (self.serves(pod) or silent) and (told is None or told.revision == self.goal.revision)

    def is_elsewhere(self, pod: Pod) -> bool:
        """Whether the pod is known to serve another revision, or has an order to."""
        told = order.parse(pod.order)
        other = pod.status is not None and pod.status.revision not in {None, self.goal.revision}
        return other or (told is not None and told.revision != self.goal.revision)


def _lacked_memory(pod: Pod) -> bool:
    """Whether the pod was evicted for want of memory: of what a node lacks, a second engine takes only that."""
    return pod.lost == EVICTED and "memory" in pod.lost_message.lower()


def _spread(pods: list[Pod], run: _Run) -> SwapStep:
    """The revision is proven: every pod that starts loads it, and those that run follow one by one."""
    goal = run.goal
    left = [pod for pod in pods if not run.is_there(pod)]
    count = f"{len(pods) - len(left)} of {len(pods)} replicas serve {goal.version}"
    step = SwapStep(
        current=goal.revision,
        candidate=None,
        attempt=run.attempt,
        reason=progress.ROLLING_OUT,
        message=count,
    )
    if not left:
        if goal.served or run.attempt.proves(run.now):
            return replace(step, done=True)
        return replace(step, attempt=replace(run.attempt, serving=run.attempt.serving or run.now))
    told = next((pod for pod in left if run.has_told(pod)), None)
    pod = told or next((pod for pod in left if pod.ready and run.is_elsewhere(pod)), None)
    if pod is None or (pod is told and (run.loads(pod) or pod.status is None)):
        waited = pod or left[0]
        stuck = run.waited_for(waited) > goal.deadline * STUCK_AFTER
        hint = "; it should be long ago: see the pod's events and logs, or delete the pod" if stuck else ""
        message = f"{count}; waiting for {waited.name} on {waited.node}{hint}"
        return replace(step, attempt=run.waiting, message=message, silent=stuck)
    return _drive(step, pod, run)


def _drive(step: SwapStep, pod: Pod, run: _Run) -> SwapStep:
    """One pod on its way to the revision: tell it, tell it again, wait for it, or see how it failed."""
    where, version = f"{pod.name} on {pod.node}", run.goal.version
    step = replace(step, attempt=run.waiting)
    if not run.has_told(pod):
        if run.evicted is not None:
            return _evicted(step, run.evicted, run)
        return replace(step, order=run.tell(pod, run.attempt), message=f"{where} is told to load {version}")
    swap = run.swap_of(pod)
    if swap is None:
        unheard = pod.ready and pod.status is not None and run.since(pod) >= RESEND_AFTER
        again = run.tell(pod, run.attempt) if unheard else None
        silent = run.since(pod) > run.goal.deadline
        message = f"waiting for {where} to begin with {version}"
        message += "; its worker does not answer on the admin port: is it kept from it?" if silent else ""
        return replace(step, order=again, message=message, silent=silent)
    if swap.state == FAILED:
        return _failed(step, pod, swap, run)
    stuck = run.since(pod) > run.goal.deadline * STUCK_AFTER
    if swap.state == SWITCHED:
        hint = "; it should be long ago: see the pod's events and logs, or delete the pod" if stuck else ""
        return replace(step, message=f"{where} has loaded {version}; waiting for it to be ready{hint}", silent=stuck)
    hint = "; it should have ended or failed long ago: see the pod's logs, or delete the pod" if stuck else ""
    if swap.state == STAGING:
        message = f"{where} stages {version} while it serves{hint}"
        return replace(step, reason=progress.STAGING, message=message, silent=stuck)
    phase = f" ({swap.phase})" if swap.phase else ""
    message = f"{where} loads {version} while it serves{phase}{hint}"
    return replace(step, reason=progress.LOADING, message=message, silent=stuck)


def _evicted(step: SwapStep, pod: Pod, run: _Run) -> SwapStep:
    """The node had not the memory for what the pod was to load. Told at once, the next one would go the same way."""
    failure = failures.of_eviction(pod, run.goal.version)
    step = replace(step, room_refused=True, failures=(failure,), message=failure.message)
    return step if run.since(pod) < run.room_after else replace(step, attempt=run.elsewhere)


def _failed(step: SwapStep, pod: Pod, swap: Swap, run: _Run) -> SwapStep:
    """The pod serves on what it served. What may pass by itself is tried again."""
    told = order.parse(pod.order)
    failure = failures.of_swap(pod, swap.failure, run.attempt.tries, told.given if told else None)
    step = replace(step, failures=(failure,), message=failure.message)
    if swap.room:
        wait, following = run.room_after, run.elsewhere
        step = replace(step, room_refused=True)
    else:
        wait = min(RETRY_AFTER * 2 ** min(run.attempt.tries, 10), RETRY_AFTER_AT_MOST)
        following = run.attempt.following
        late = run.now - run.attempt.started > run.goal.deadline
        step = replace(step, condemned=failure.counts(deadline_exceeded=late))
    if step.condemned or run.since(pod) < wait:
        return step
    return replace(step, attempt=following, order=run.tell(pod, following))

"""Pods that obey orders, for the tests of swaps: what the operator writes, and what the workers then say."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from cosyvoice_operator import order, swap
from cosyvoice_operator.observed import Live, Observed, Pod, Swap, WorkerStatus
from cosyvoice_operator.swap import Attempt, Goal, SwapStep
from cosyvoice_operator.termination import Termination
from tests.unit.operator.builders import START, ready_pod, workload

TEMPLATE, OLD, NEW = "t0", "r1", "r2"
GOAL = Goal(template=TEMPLATE, revision=NEW, version="v2", deadline=timedelta(seconds=600))
FIRST = Attempt(number=5, started=START)


def swappable_pod(name: str, serves: str | None = OLD, **fields: object) -> Pod:
    """A pod of the template that serves `serves`; None: its worker does not answer."""
    status = None if serves is None else WorkerStatus(phase="Ready", revision=serves)
    return ready_pod(serves or OLD, name, template=TEMPLATE, **{"status": status, **fields})


class Scene:
    """Pods of one template and its live ConfigMap. Each `step` is one pass, a second later."""

    def __init__(self, *pods: Pod, current: str = OLD, candidate: str | None = None) -> None:
        self.pods = {pod.name: pod for pod in pods}
        self.live = Live(template=TEMPLATE, current=current, candidate=candidate)
        self.attempt = FIRST
        self.now = START + timedelta(seconds=100)

    @property
    def observed(self) -> Observed:
        pods = tuple(self.pods.values())
        return Observed(pods=pods, lives=(self.live,), workload=workload(self.live.current, template=TEMPLATE))

    def step(self, goal: Goal = GOAL, seconds: float = 1) -> SwapStep:
        """What is planned now, done as the operator does it: attempt and documents first, then the order."""
        self.now += timedelta(seconds=seconds)
        planned = swap.plan(self.observed, goal, self.attempt, self.now)
        self.attempt = planned.attempt
        self.live = replace(self.live, current=planned.current, candidate=planned.candidate)
        if planned.order is not None:
            name, text = planned.order
            self.pods[name] = replace(self.pods[name], order=text)
        return planned

    def prove(self, goal: Goal = GOAL) -> SwapStep:
        """What is planned once that has lasted for long enough which a swap waits for."""
        self.step(goal)
        return self.step(goal, seconds=5)

    def say(self, name: str, state: str, *, room: bool = False, phase: str | None = None, **failure: str) -> None:
        """The worker of the pod says how far it is with its order; Switched: it serves what it was told to."""
        pod = self.pods[name]
        told = order.parse(pod.order)
        assert told is not None, f"{name} was told nothing"
        serves = told.revision if state == swap.SWITCHED else pod.revision
        said = Swap(order=told.name, state=state, room=room, phase=phase, failure=Termination(**failure))
        status = WorkerStatus(phase="Ready", revision=serves, swap=said)
        self.pods[name] = replace(pod, status=status, revision=serves)

    def change(self, name: str, **fields: object) -> None:
        self.pods[name] = replace(self.pods[name], **fields)  # type: ignore[arg-type] # any field of a pod

    def told(self, name: str) -> str | None:
        """The order that the pod has, without its nonce."""
        found = order.parse(self.pods[name].order)
        return found.name if found else None

    def orders(self) -> list[str | None]:
        return [self.told(name) for name in self.pods]

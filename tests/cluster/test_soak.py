"""Half an hour of bad luck and bad company: nobody is answered wrongly, and nothing is left behind.

COSYVOICE_SOAK_SECONDS makes it shorter or longer.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dev.deploy import NAMESPACE
from dev.kubectl import Kubectl
from dev.playground import Playground
from dev.waiting import wait_for
from tests.cluster import leavings
from tests.cluster.crowd import CUT, RIGHT, Crowd
from tests.cluster.memory import cgroup_of

SECONDS = float(os.environ.get("COSYVOICE_SOAK_SECONDS", "1800"))
MIB = 2**20
NAME = "soaked"
REPLICAS = 2
PAUSE = (8.0, 20.0)  # seconds between two accidents
# Three dead engines in ten minutes are a reason to end the container: the pod that is watched has fewer.
WATCHED_ENGINE_SECONDS = 400.0
GROWTH = 1.15  # of memory, from the second quarter of the time to the last

EXPECTED = {
    "speaks": RIGHT | {CUT},
    "listens_to_a_stream": RIGHT | {CUT},
    "leaves": {"left", CUT},
    "writes_slowly": {"left", CUT},
    "says_nothing": {"400", "503 Retry-After", CUT},
    "says_too_much": {"413", "503 Retry-After", CUT},
    "sends_rubbish": {"400", CUT},
}

pytestmark = [pytest.mark.long, pytest.mark.timeout(SECONDS + 900)]


def test_bad_luck_and_bad_company_leave_nothing_behind(
    playground: Playground, kubectl: Kubectl, tiny_path: str, audit_log: object
) -> None:
    playground.apply_model(NAME, path=tiny_path, worker={"replicas": REPLICAS})
    playground.wait_ready(NAME)
    watched = playground.pods(NAME)[0]
    before = {pod["metadata"]["uid"]: leavings.held(pod) for pod in playground.pods(NAME)}
    expected = before[watched["metadata"]["uid"]]
    front = leavings.front(watched)
    operator = operator_process(kubectl)
    crowd = Crowd(playground.get("service", NAME)["spec"]["clusterIP"])
    memory: dict[str, list[int]] = {"front": [], "operator": []}

    crowd.come()
    try:
        for accident in accidents(playground, watched):
            memory["front"].append(leavings.resident(front))
            memory["operator"].append(leavings.resident(operator))
            accident()
    finally:
        crowd.leave()

    print({kind: dict(heard) for kind, heard in crowd.heard.items()})  # noqa: T201 - for -s, as the next
    print({name: [count // MIB for count in seen] for name, seen in memory.items()})  # noqa: T201
    for kind, heard in crowd.heard.items():
        assert set(heard) <= EXPECTED[kind], (kind, heard)
    assert crowd.heard["speaks"]["200"] > crowd.heard["speaks"][CUT]
    playground.wait_ready(NAME)
    assert watched["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in playground.pods(NAME)}
    for pod in playground.pods(NAME):
        wait_for(
            f"{pod['metadata']['name']} to hold {expected}",
            lambda pod=pod: leavings.held(pod) == expected,  # type: ignore[misc]  # mypy knows no type of a default here
            timeout=120,
        )
    for name, seen in memory.items():
        quarter = max(1, len(seen) // 4)
        early, late = statistics.median(seen[quarter : 2 * quarter] or seen), statistics.median(seen[-quarter:])
        assert late <= GROWTH * early, f"{name}: {early / MIB:.1f} MiB, then {late / MIB:.1f} MiB"


def operator_process(kubectl: Kubectl) -> int:
    """The operator's process, by the machine's number."""
    pods = kubectl.get("-n", NAMESPACE, "pods", "-l", "app.kubernetes.io/name=cosyvoice-operator")["items"]
    (pod,) = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    name = pod["spec"]["containers"][0]["name"]
    return min(int(pid) for pid in (cgroup_of(pod, name) / "cgroup.procs").read_text().split())


def accidents(playground: Playground, watched: dict[str, Any]) -> Iterator[Any]:
    """One after the other until the time is over; which is drawn by lot, with a seed that is printed."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - for a failure
    dice = random.Random(seed)  # noqa: S311 - accidents, no secrets
    end = time.monotonic() + SECONDS
    spared = time.monotonic()

    def others() -> list[dict[str, Any]]:
        found = playground.pods(NAME)
        return [pod for pod in found if pod["metadata"]["uid"] != watched["metadata"]["uid"]]

    def lose_a_pod() -> None:
        for pod in others()[:1]:
            playground.run("delete", "pod", pod["metadata"]["name"], "--wait=false", "--grace-period=1")

    def kill_an_engine() -> None:
        nonlocal spared
        victims = others()
        if time.monotonic() - spared > WATCHED_ENGINE_SECONDS:
            victims, spared = [watched], time.monotonic()
        for pod in victims[:1]:
            try:
                for engine in leavings.engines(pod):
                    os.kill(engine, signal.SIGKILL)
            except (LookupError, OSError, ValueError):
                pass  # It does not run yet, or not any more.

    def nothing() -> None:
        """Time to come to oneself."""

    while time.monotonic() < end:
        time.sleep(dice.uniform(*PAUSE))
        yield dice.choice((lose_a_pod, kill_an_engine, nothing, nothing))

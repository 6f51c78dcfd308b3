"""Versions swapped in place on the two-node cluster: the pods stay, and what serves changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dev.playground import Playground
from dev.waiting import wait_for

HOT = {"strategy": "HotSwap"}
# Room for a second engine beside the first.
RESOURCES = {"requests": {"cpu": "50m", "memory": "700Mi"}, "limits": {"memory": "3Gi"}}


def worker_status(playground: Playground, pod: dict[str, Any]) -> dict[str, Any]:
    raw = f"/api/v1/namespaces/{playground.namespace}/pods/{pod['metadata']['name']}:8081/proxy/status"
    answer: dict[str, Any] = json.loads(playground.run("get", "--raw", raw))
    return answer


def lives(playground: Playground, name: str) -> list[tuple[str, int]]:
    """Who the pods are, and how often a container of theirs was restarted."""
    return sorted(
        (
            pod["metadata"]["uid"],
            sum(
                status["restartCount"]
                for kind in ("initContainerStatuses", "containerStatuses")
                for status in pod["status"][kind]
            ),
        )
        for pod in playground.pods(name)
    )


def served(playground: Playground, name: str) -> set[tuple[str, str]]:
    """Version and revision, as each worker itself tells them."""
    statuses = [worker_status(playground, pod) for pod in playground.pods(name)]
    return {(status["version"], status["revision"]) for status in statuses}


def test_a_good_version_a_bad_one_and_a_good_one_again_in_the_same_pods(
    playground: Playground, tiny_path: str, bad_path: Callable[[str], str]
) -> None:
    worker = {"replicas": 2, "resources": RESOURCES}

    def ask_for(version: str, path: str) -> None:
        playground.apply_model("swapped", path=path, version=version, worker=worker, rollout=HOT)

    def target_is(version: str) -> Callable[[], bool]:
        return lambda: playground.model("swapped")["status"].get("targetVersion") == version

    ask_for("v1", tiny_path)
    playground.wait_ready("swapped")
    before = lives(playground, "swapped")
    assert [restarts for _, restarts in before] == [0, 0]

    ask_for("v2", tiny_path)
    wait_for("v2 to be the target", target_is("v2"))
    good = playground.wait_ready("swapped")["status"]
    assert (good["activeVersion"], good["rollout"]["strategy"]) == ("v2", "HotSwap")
    assert served(playground, "swapped") == {("v2", good["activeRevision"])}
    assert lives(playground, "swapped") == before

    ask_for("v3", bad_path("missing-tensor"))
    playground.wait_condition("swapped", "RolledBack")
    status = playground.model("swapped")["status"]
    assert (status["reason"], status["activeVersion"]) == ("RolledBack", "v2")
    (failure,) = status["failures"]
    assert (failure["version"], failure["reason"]) == ("v3", "MissingTensor")
    assert failure["tensor"]
    assert failure["pod"]
    assert served(playground, "swapped") == {("v2", good["activeRevision"])}
    assert lives(playground, "swapped") == before

    ask_for("v4", tiny_path)
    wait_for("v4 to be the target", target_is("v4"))
    again = playground.wait_ready("swapped")["status"]
    assert again["activeVersion"] == "v4"
    assert served(playground, "swapped") == {("v4", again["activeRevision"])}
    assert lives(playground, "swapped") == before
    orders = {pod["metadata"]["annotations"]["cosyvoice.dev/swap"] for pod in playground.pods("swapped")}
    assert all(order.startswith(f"{again['activeRevision']}.") for order in orders)

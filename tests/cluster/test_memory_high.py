"""memory.high on the local cluster, with the chart's node agent in it.

On a machine with cgroup v2 it is applied; on one with v1 everybody says that it cannot be, and nothing else is any
different. What a kernel of version 2 does with the value is shown in a virtual machine, whatever this machine has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dev import helm
from dev.cluster import cgroups
from dev.demo.target import Target
from dev.kubectl import Kubectl
from dev.playground import Playground
from dev.waiting import wait_for

GIB = 2**30
WANTED = "1.5Gi"


class Agents:
    """The node agent's DaemonSet in a namespace that lets it mount a directory of the node."""

    def __init__(self, kubectl: Kubectl, namespace: str, objects: list[dict[str, Any]]) -> None:
        self._kubectl = kubectl
        self._namespace = namespace
        self.objects = objects

    def pods(self) -> list[dict[str, Any]]:
        found = self._kubectl.get("-n", self._namespace, "pods") or {"items": []}
        pods: list[dict[str, Any]] = found["items"]
        return pods

    def run_everywhere(self) -> bool:
        pods = self.pods()
        return len(pods) == 2 and all(pod["status"]["phase"] == "Running" for pod in pods)

    def restarts(self) -> list[int]:
        return [pod["status"]["containerStatuses"][0]["restartCount"] for pod in self.pods()]

    def messages(self) -> set[str]:
        """What they logged."""
        logs = [self._kubectl.run("-n", self._namespace, "logs", pod["metadata"]["name"]) for pod in self.pods()]
        return {json.loads(line)["message"] for log in logs for line in log.splitlines()}


@pytest.fixture
def agents(kubectl: Kubectl, cluster: Target, playground: Playground) -> Iterator[Agents]:
    namespace = f"{playground.namespace}-nodes"
    repository, _, tag = cluster.operator_image.rpartition(":")
    values = {
        "fullnameOverride": f"{playground.namespace[:40]}-operator",
        "images": {"operator": {"repository": repository, "tag": tag}},
        "nodeAgent": {"enabled": True, "namespace": namespace, "intervalSeconds": 1},
    }
    rendered = helm.find().template("cosyvoice", namespace, values, "--no-hooks")
    objects = [one for one in rendered if one["metadata"]["name"].endswith("-node-agent")]
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
    kubectl.apply(home, *objects)
    yield Agents(kubectl, namespace, objects)
    kubectl.run("delete", "namespace", namespace, "--wait=false")
    for one in objects:
        if one["kind"].startswith("Cluster"):
            kubectl.run("delete", one["kind"], one["metadata"]["name"])


def test_what_the_nodes_can_do_is_told_and_the_model_serves(
    playground: Playground, agents: Agents, tiny_path: str
) -> None:
    unified = cgroups.hierarchies().unified
    playground.apply_model("throttled", path=tiny_path, worker={"memoryHigh": WANTED})
    wait_for("the agents to run", agents.run_everywhere)
    playground.wait_ready("throttled")

    expected = "True" if unified else "Unknown"
    condition = playground.wait_condition("throttled", "MemoryHighApplied", status=expected)

    told = "by the node agent" if unified else "this node has cgroup v1, whose kernel interface has no memory.high"
    assert told in condition["message"]
    assert condition["reason"] == ("Applied" if unified else "NotSupported")
    (pod,) = playground.pods("throttled")
    assert pod["metadata"]["labels"]["cosyvoice.dev/memory-high"] == str(GIB * 3 // 2)
    assert [one["restartCount"] for one in pod["status"]["containerStatuses"]] == [0]
    status = playground.model("throttled")["status"]
    assert (status["reason"], status["ready"]) == ("Ready", "1/1")
    assert status.get("failures", []) == []

    assert agents.restarts() == [0, 0]
    if not unified:
        (message,) = agents.messages()
        assert message.startswith("/node/cgroup is not of cgroup v2")

"""An operator that Helm installed, through the life of its release; the workers live on whatever becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dev import deploy, helm
from dev.demo.target import Target
from dev.helm import CHART, Helm
from dev.kubectl import Kubectl
from dev.playground import Playground
from dev.waiting import wait_for

RELEASE = "speech"


@pytest.fixture
def only_operator(kubectl: Kubectl, operator: None) -> Iterator[None]:
    """The suite's own operator away: two must not look after the same namespace."""
    scale = ("-n", deploy.NAMESPACE, "scale", f"deployment/{deploy.NAME}")
    kubectl.run(*scale, "--replicas=0")
    pods = ("-n", deploy.NAMESPACE, "get", "pods", "-l", f"app.kubernetes.io/name={deploy.NAME}", "-o", "name")
    wait_for("the suite's operator to go", lambda: kubectl.run(*pods) == "", timeout=60)
    yield
    kubectl.run(*scale, "--replicas=1")
    kubectl.run("-n", deploy.NAMESPACE, "rollout", "status", f"deployment/{deploy.NAME}", timeout=200)


def workers(playground: Playground) -> dict[str, int]:
    """The model's ready pods and how often their containers were restarted."""
    return {
        pod["metadata"]["uid"]: sum(one["restartCount"] for one in pod["status"]["containerStatuses"])
        for pod in playground.pods("narrator")
        if all(one["ready"] for one in pod["status"].get("containerStatuses", [{"ready": False}]))
    }


def release(action: str, tool: Helm, cluster: Target, playground: Playground, **values: Any) -> None:
    """`helm install` or `helm upgrade`, with the images of this tree."""
    images = {}
    for name, reference in (("operator", cluster.operator_image), ("worker", cluster.worker_image)):
        repository, _, tag = reference.rpartition(":")
        images[name] = {"repository": repository, "tag": tag}
    values |= {
        "crds": {"enabled": False},
        "watchNamespaces": [playground.namespace],
        "images": images,
        "modelDefaults": {"device": "cpu", "stageMemory": deploy.SMALL_STAGE_MEMORY},
        "resyncSeconds": 2,
    }
    flags = ("-n", playground.namespace, "--wait", "--timeout=150s")
    tool.run(action, RELEASE, str(CHART), *flags, values=values, timeout=200)


def test_workers_live_on_whatever_becomes_of_the_release(
    cluster: Target, only_operator: None, playground: Playground, tiny_path: str
) -> None:
    tool = helm.find(cluster.kubectl.kubeconfig)
    release("install", tool, cluster, playground)
    playground.apply_model("narrator", path=tiny_path)
    playground.wait_ready("narrator")
    assert "narrator: v1 spoke" in tool.run("test", RELEASE, "-n", playground.namespace, "--logs", timeout=200)

    # In the middle of a rollout the operator is replaced; the rollout goes on.
    playground.apply_model("narrator", path=tiny_path, version="v2")
    wait_for("the rollout to begin", lambda: len(playground.get("replicasets")["items"]) >= 3)
    release("upgrade", tool, cluster, playground, logLevel="debug")
    playground.wait_ready("narrator")
    assert playground.model("narrator")["status"]["activeVersion"] == "v2"
    before = workers(playground)
    assert list(before.values()) == [0]

    tool.run("rollback", RELEASE, "1", "-n", playground.namespace, "--wait", "--timeout=150s", timeout=200)
    assert workers(playground) == before

    tool.run("uninstall", RELEASE, "-n", playground.namespace, "--wait", timeout=200)
    playground.run("delete", "pdb", "narrator")
    assert workers(playground) == before

    release("install", tool, cluster, playground)
    wait_for("the new release to repair what was missing", lambda: playground.get("pdb", "narrator"))
    assert workers(playground) == before

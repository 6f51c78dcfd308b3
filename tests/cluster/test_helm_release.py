"""An operator that Helm installed, through the life of its release; the workers live on whatever becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dev import deploy, helm
from dev.demo.target import Target
from dev.helm import CHART, Helm
from dev.images import delivery, references
from dev.images.layout import default_layout
from dev.kubectl import Kubectl
from dev.playground import Playground
from dev.waiting import wait_for

RELEASE = "speech"
NAME = f"{RELEASE}-cosyvoice-operator"


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


@pytest.fixture(scope="module")
def other_operator_image(cluster: Target) -> str:
    """Another reference of the operator's image, in the nodes."""
    reference = f"{cluster.operator_image}-other"
    layout = default_layout()
    delivery.import_into_cluster(layout, replace(references.read(layout.references).operator, reference=reference))
    return reference


def workers(playground: Playground) -> dict[str, int]:
    """The model's ready pods and how often their containers were restarted."""
    return {
        pod["metadata"]["uid"]: sum(one["restartCount"] for one in pod["status"]["containerStatuses"])
        for pod in playground.pods("narrator")
        if all(one["ready"] for one in pod["status"].get("containerStatuses", [{"ready": False}]))
    }


def release(
    action: str, tool: Helm, cluster: Target, playground: Playground, operator_image: str | None = None, **values: Any
) -> None:
    """`helm install` or `helm upgrade`, with the images of this tree or another one of the operator."""
    images = {}
    for name, reference in (
        ("operator", operator_image or cluster.operator_image),
        ("worker", cluster.worker_image),
    ):
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
    cluster: Target, only_operator: None, other_operator_image: str, playground: Playground, tiny_path: str
) -> None:
    tool = helm.find(cluster.kubectl.kubeconfig)
    release("install", tool, cluster, playground)
    playground.apply_model("narrator", path=tiny_path)
    playground.wait_ready("narrator")
    assert "narrator: v1 spoke" in tool.run("test", RELEASE, "-n", playground.namespace, "--logs", timeout=200)

    # In the middle of a rollout the operator is replaced by another image's, told otherwise; the rollout goes on.
    playground.apply_model("narrator", path=tiny_path, version="v2")
    wait_for("the rollout to begin", lambda: len(playground.get("replicasets")["items"]) >= 3)
    release("upgrade", tool, cluster, playground, other_operator_image, logLevel="debug")
    assert images_of(operators(playground)) == {other_operator_image}
    playground.wait_ready("narrator")
    assert playground.model("narrator")["status"]["activeVersion"] == "v2"
    before = workers(playground)
    assert list(before.values()) == [0]

    tool.run("rollback", RELEASE, "1", "-n", playground.namespace, "--wait", "--timeout=150s", timeout=200)
    assert images_of(operators(playground)) == {cluster.operator_image}
    assert workers(playground) == before

    tool.run("uninstall", RELEASE, "-n", playground.namespace, "--wait", timeout=200)
    playground.run("delete", "pdb", "narrator")
    assert workers(playground) == before

    release("install", tool, cluster, playground)
    wait_for("the new release to repair what was missing", lambda: playground.get("pdb", "narrator"))
    assert workers(playground) == before


def test_of_two_operators_one_leads_and_the_other_takes_over(
    cluster: Target, only_operator: None, playground: Playground, tiny_path: str
) -> None:
    release("install", helm.find(cluster.kubectl.kubeconfig), cluster, playground, replicas=2)
    names = {pod["metadata"]["name"] for pod in operators(playground)}
    assert len(names) == 2
    assert playground.get("pdb", NAME)["spec"]["maxUnavailable"] == 1
    leader = wait_for("one of them to lead", lambda: names & {holder(playground)}).pop()

    playground.run("delete", "pod", leader, "--grace-period=0", "--force")

    wait_for("another one to lead", lambda: holder(playground) not in {leader, None}, timeout=60)
    playground.apply_model("narrator", path=tiny_path)
    playground.wait_ready("narrator")


def holder(playground: Playground) -> str | None:
    """The pod that has the Lease."""
    lease = playground.get("lease", deploy.NAME)
    return lease["spec"].get("holderIdentity") if lease else None


def operators(playground: Playground) -> list[dict[str, Any]]:
    """The release's pods that are to stay."""
    found = playground.get("pods", "-l", f"app.kubernetes.io/name={deploy.NAME}")["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def images_of(pods: list[dict[str, Any]]) -> set[str]:
    """What their containers run."""
    return {container["image"] for pod in pods for container in pod["spec"]["containers"]}

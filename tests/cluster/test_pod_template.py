"""What a user lays over the pods is in the pods that run, and what cannot be laid over them is refused by its name."""

from __future__ import annotations

from typing import Any

from dev.demo.target import Target
from dev.playground import Playground
from dev.waiting import wait_for

TEXT = "what the radio wants"


def overlay(image: str) -> dict[str, Any]:
    """Labels, an annotation, a spread, a volume in the worker, and a container beside it."""
    mount = {"name": "notes", "mountPath": "/notes", "readOnly": True}
    return {
        "metadata": {"labels": {"team": "radio"}, "annotations": {"example.com/owner": "radio"}},
        "spec": {
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"team": "radio"}},
                    "matchLabelKeys": ["pod-template-hash"],
                }
            ],
            "volumes": [{"name": "notes", "configMap": {"name": "notes"}}],
            "containers": [
                {"name": "worker", "volumeMounts": [mount], "env": [{"name": "TEAM", "value": "radio"}]},
                {
                    "name": "reader",
                    "image": image,
                    "command": ["sh", "-c", 'echo "$(cat /notes/first)" && exec sleep 600'],
                    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                    "volumeMounts": [mount],
                },
            ],
        },
    }


def test_what_is_laid_over_the_pods_runs_in_them(playground: Playground, cluster: Target, tiny_path: str) -> None:
    playground.run("create", "configmap", "notes", f"--from-literal=first={TEXT}")
    playground.apply_model(
        "narrator", path=tiny_path, worker={"replicas": 2, "podTemplate": overlay(cluster.worker_image)}
    )
    playground.wait_ready("narrator")

    pods = playground.pods("narrator")
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["node1", "node2"]
    for pod in pods:
        name, metadata = pod["metadata"]["name"], pod["metadata"]
        assert (metadata["labels"]["team"], metadata["annotations"]["example.com/owner"]) == ("radio", "radio")
        wait_for(
            f"{name}'s reader to say what it read",
            lambda name=name: playground.run("logs", name, "-c", "reader").strip() == TEXT,  # type: ignore[misc]  # as mypy knows no type of a default here
        )
        in_worker = playground.run("exec", name, "-c", "worker", "--", "sh", "-c", "cat /notes/first; echo $TEAM")
        assert in_worker.split("\n")[:1] == [f"{TEXT}radio"]


def test_an_overlay_that_would_leave_pod_security_is_refused_and_what_serves_goes_on(
    playground: Playground, tiny_path: str
) -> None:
    playground.apply_model("narrator", path=tiny_path)
    playground.wait_ready("narrator")
    before = [pod["metadata"]["uid"] for pod in playground.pods("narrator")]
    privileged = {"spec": {"containers": [{"name": "worker", "securityContext": {"privileged": True}}]}}

    playground.apply_model("narrator", path=tiny_path, worker={"podTemplate": privileged})

    stalled = playground.wait_condition("narrator", "Stalled")
    assert stalled["reason"] == "InvalidSpec"
    assert "spec.worker.podTemplate.spec.containers[worker].securityContext" in stalled["message"]
    assert [pod["metadata"]["uid"] for pod in playground.pods("narrator")] == before

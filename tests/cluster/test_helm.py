"""`helm test` in the cluster: it hears a model that speaks, and says why it cannot hear one that does not.

The releases here run no operator of their own (`replicas: 0`): two must not look after the same namespace, and the
suite's, which the same chart rendered, does.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from dev import helm
from dev.demo.target import Target
from dev.helm import CHART, Helm, HelmError
from dev.playground import Playground

RELEASE = "listener"


@pytest.fixture
def installed(cluster: Target, playground: Playground) -> Helm:
    """Helm, and the chart installed in the playground, which is under Pod Security `restricted`."""
    repository, _, tag = cluster.worker_image.rpartition(":")
    values: dict[str, Any] = {
        "replicas": 0,
        "crds": {"enabled": False},
        "watchNamespaces": [playground.namespace],
        "images": {"worker": {"repository": repository, "tag": tag}},
        "test": {"timeoutSeconds": 10},
    }
    found = helm.find(cluster.kubectl.kubeconfig)
    found.run("install", RELEASE, str(CHART), "-n", playground.namespace, values=values)
    return found


def test_helm_test_hears_a_model_that_speaks(installed: Helm, playground: Playground, tiny_path: str) -> None:
    playground.apply_model("narrator", path=tiny_path)
    playground.wait_ready("narrator")

    said = installed.run("test", RELEASE, "-n", playground.namespace, "--logs", timeout=180)

    assert re.search(
        rf"{playground.namespace}/narrator: v1 spoke \d+\.\d\d s at 24000 Hz, -\d+ dB of full scale, in \d+\.\d\d s",
        said,
    )
    assert playground.get("pods", "-l", "app.kubernetes.io/name=cosyvoice-test")["items"] == []


def test_helm_test_without_a_model_says_what_to_do(installed: Helm, playground: Playground) -> None:
    with pytest.raises(HelmError) as failure:
        installed.run("test", RELEASE, "-n", playground.namespace, timeout=180)

    assert f"there is no CosyVoiceModel in the namespaces {playground.namespace}: apply one" in str(failure.value)


def test_helm_test_of_a_model_that_is_not_ready_says_why(installed: Helm, playground: Playground) -> None:
    playground.apply_model("absent", path="no/such/model")
    playground.wait_condition("absent", "Stalled")

    with pytest.raises(HelmError) as failure:
        installed.run("test", RELEASE, "-n", playground.namespace, timeout=180)

    reason = playground.model("absent")["status"]["reason"]
    assert f"{playground.namespace}/absent is not ready: {reason}: " in str(failure.value)

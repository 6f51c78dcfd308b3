"""One CosyVoiceModel from apply to delete on the two-node cluster."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import Any

from dev.demo import speak
from dev.playground import READY_TIMEOUT, Playground
from dev.waiting import wait_for

OURS = "cosyvoicemodels,deployments,replicasets,pods,services,endpointslices,poddisruptionbudgets,configmaps"


def ready_endpoints(playground: Playground, name: str) -> list[str]:
    """Addresses that the Service would send traffic to right now."""
    slices = playground.get("endpointslices", "-l", f"kubernetes.io/service-name={name}")["items"]
    return [
        address
        for endpoint_slice in slices
        for endpoint in endpoint_slice.get("endpoints") or []
        if endpoint["conditions"].get("ready")
        for address in endpoint["addresses"]
    ]


def test_apply_becomes_ready_and_speaks_on_two_nodes(playground: Playground, tiny_path: str) -> None:
    playground.apply_model("narrator", path=tiny_path, worker={"replicas": 2})

    model = playground.wait_ready("narrator")

    assert model["status"]["ready"] == "2/2"
    assert model["status"]["activeVersion"] == "v1"
    assert {pod["spec"]["nodeName"] for pod in playground.pods("narrator")} == {"node1", "node2"}
    with speak.port_forward(playground.kubectl, playground.namespace, "narrator") as url:
        speech = speak.say(url, "Hello there.", None, seed=7, timeout=60)
    assert speech.wav[:4] == b"RIFF"
    assert speech.sample_rate == 24000
    assert speech.seconds_of_audio > 0.5
    assert len(speech.speech_tokens_sha256) == 64


def test_no_endpoint_is_ready_before_the_warm_up_is_over(playground: Playground, tiny_path: str) -> None:
    seen: list[tuple[bool, dict[str, Any]]] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            addresses = ready_endpoints(playground, "gate")
            for pod in playground.pods("gate"):
                address = pod.get("status", {}).get("podIP")
                if address is None:
                    continue
                raw = f"/api/v1/namespaces/{playground.namespace}/pods/{pod['metadata']['name']}:8081/proxy/status"
                probe = subprocess.run(
                    [playground.kubectl.program, "get", "--raw", raw],
                    env=playground.kubectl.environment,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if probe.returncode == 0:
                    seen.append((address in addresses, json.loads(probe.stdout)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        playground.apply_model("gate", path=tiny_path)
        playground.wait_ready("gate")
        wait_for("a reading of the warm pod", lambda: any(status["ready"] for _, status in seen))
    finally:
        done.set()
        watcher.join()

    cold = [status["phase"] for _, status in seen if not status["ready"]]
    assert cold, "the watcher never saw the pod before it was warm, so it proves nothing"
    assert [status for endpoint, status in seen if endpoint and not status["ready"]] == []


def test_a_killed_pod_comes_back(playground: Playground, tiny_path: str) -> None:
    playground.apply_model("phoenix", path=tiny_path)
    playground.wait_ready("phoenix")
    (before,) = playground.pods("phoenix")

    playground.run("delete", "pod", before["metadata"]["name"], "--grace-period=0", "--force")
    wait_for(
        "another pod that is ready",
        lambda: [
            condition
            for pod in playground.pods("phoenix")
            if pod["metadata"]["uid"] != before["metadata"]["uid"]
            for condition in pod["status"].get("conditions", ())
            if condition["type"] == "Ready" and condition["status"] == "True"
        ],
        timeout=READY_TIMEOUT,
    )

    playground.wait_ready("phoenix")
    wait_for("the count in the status", lambda: playground.model("phoenix")["status"]["ready"] == "1/1")


def test_a_killed_engine_is_replaced_inside_the_same_container(playground: Playground, tiny_path: str) -> None:
    playground.apply_model("engine", path=tiny_path)
    playground.wait_ready("engine")
    (pod,) = playground.pods("engine")
    name = pod["metadata"]["name"]

    def status() -> dict[str, Any]:
        raw = f"/api/v1/namespaces/{playground.namespace}/pods/{name}:8081/proxy/status"
        answer: dict[str, Any] = json.loads(playground.run("get", "--raw", raw))
        return answer

    first = status()["engine"]["pid"]
    playground.run("exec", name, "-c", "worker", "--", "python3", "-c", f"import os; os.kill({first}, 9)")
    wait_for("another engine", lambda: status()["ready"] and status()["engine"]["pid"] != first, timeout=60)

    (after,) = playground.pods("engine")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert [c["restartCount"] for c in after["status"]["containerStatuses"]] == [0]
    assert status()["engine"]["restarts"] == 1
    playground.wait_ready("engine")


def test_scale_through_the_subresource_reaches_both_nodes_and_back(playground: Playground, tiny_path: str) -> None:
    playground.apply_model("elastic", path=tiny_path)
    playground.wait_ready("elastic")
    revision = playground.model("elastic")["status"]["activeRevision"]

    playground.run("scale", "cosyvoicemodel", "elastic", "--replicas=2")
    model = playground.wait_ready("elastic")

    assert model["status"]["ready"] == "2/2"
    assert model["status"]["activeRevision"] == revision
    playground.run("scale", "cosyvoicemodel", "elastic", "--replicas=0")
    wait_for("no pods", lambda: playground.pods("elastic") == [])
    assert playground.wait_condition("elastic", "Ready", reason="ScaledToZero")


def test_an_edit_makes_exactly_one_new_revision(playground: Playground, tiny_path: str) -> None:
    playground.apply_model("edited", path=tiny_path)
    first = playground.wait_ready("edited")["status"]["activeRevision"]

    playground.apply_model("edited", path=tiny_path, version="v2")
    wait_for("the new version", lambda: playground.model("edited")["status"].get("targetVersion") == "v2")
    model = playground.wait_ready("edited")

    assert model["status"]["activeVersion"] == "v2"
    assert model["status"]["activeRevision"] != first
    history = playground.get("configmaps", "-l", "cosyvoice.dev/model=edited,cosyvoice.dev/revision")["items"]
    assert len(history) == 2
    assert all(cm["immutable"] for cm in history)


def test_delete_leaves_nothing(playground: Playground, tiny_path: str) -> None:
    playground.apply_model("mayfly", path=tiny_path)
    playground.wait_ready("mayfly")

    playground.run("delete", "cosyvoicemodel", "mayfly", "--wait=true")

    def left() -> list[str]:
        names = playground.run("get", OURS, "-o", "name").split()
        return [name for name in names if "kube-root-ca.crt" not in name]

    wait_for("nothing to be left", lambda: left() == [], timeout=120)

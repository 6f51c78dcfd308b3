"""What keeps a new version's pods out although nothing is wrong with it: told as what it is, and never rolled back."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dev.cluster import gpus, images
from dev.demo.target import Target
from dev.playground import RESOURCES, Playground
from dev.waiting import wait_for
from tests.cluster import nodes
from tests.cluster.fake_gpus import WANTS_ONE, fake_gpus, resources

NAME = "narrator"
# The shortest that there is: what is not the version's fault is not so after a deadline either.
DEADLINE_SECONDS = 10
LONG = 600  # for pods that would be late for it
UNPULLABLE = "localhost:1/none:none"


@pytest.fixture(scope="module")
def served(shared_playground: Playground, tiny_path: str) -> dict[str, Any]:
    """The pod of v1, which serves on node1 through everything here."""
    first(shared_playground, tiny_path)
    shared_playground.wait_ready(NAME)
    (pod,) = shared_playground.pods(NAME)
    found: dict[str, Any] = pod
    return found


@pytest.fixture
def place(shared_playground: Playground, served: dict[str, Any], tiny_path: str) -> Iterator[Playground]:
    """The namespace in which v1 serves; it does so again afterwards, with the same pod."""
    yield shared_playground
    first(shared_playground, tiny_path)
    shared_playground.wait_ready(NAME)
    running = [pod for pod in shared_playground.pods(NAME) if pod["status"]["phase"] == "Running"]
    assert [pod["metadata"]["uid"] for pod in running] == [served["metadata"]["uid"]]


def first(place: Playground, path: str) -> None:
    place.apply_model(NAME, path=path, version="v1", worker={"nodeSelector": on("node1")})


def second(place: Playground, path: str, *, deadline: int = DEADLINE_SECONDS, **spec: Any) -> None:
    """Apply v2, which is as good as v1 but for what the test does to it."""
    place.apply_model(NAME, path=path, version="v2", rollout={"progressDeadlineSeconds": deadline}, **spec)


def on(node: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": node}


def check_blameless(place: Playground, *reasons: str, words: str) -> None:
    """The status gives one of `reasons` and `words`, and so it does after a while; v1 serves, v2 stays wanted."""

    def told() -> dict[str, Any] | None:
        model = place.model(NAME)
        status: dict[str, Any] = model["status"]
        current = status["observedGeneration"] == model["metadata"]["generation"]
        return status if current and status["reason"] in reasons and words in status["message"] else None

    try:
        wait_for(f"{' or '.join(reasons)}: …{words}…", told, timeout=120)
    except Exception as error:
        error.add_note(place.describe(NAME))
        raise
    time.sleep(DEADLINE_SECONDS + 2)
    status: dict[str, Any] = place.model(NAME)["status"]
    assert status.get("quarantine", []) == []
    assert (status["targetVersion"], status["activeVersion"], status["readyReplicas"]) == ("v2", "v1", 1)
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert (conditions["Ready"], conditions["Available"], conditions["RolledBack"]) == ("False", "True", "False")
    template = place.get("deployment", NAME)["spec"]["template"]["metadata"]["labels"]
    assert template["cosyvoice.dev/version"] == "v2"


def the_second_pod(place: Playground) -> dict[str, Any]:
    """The newest pod of v2, once its worker runs."""

    def running() -> dict[str, Any] | None:
        for pod in place.pods(NAME):
            if pod["metadata"]["labels"]["cosyvoice.dev/version"] == "v2" and any(
                "running" in container["state"] for container in pod["status"].get("containerStatuses", [])
            ):
                found: dict[str, Any] = pod
                return found
        return None

    pod = wait_for("a running worker of v2", running)
    if pod is None:
        raise LookupError("v2")
    return pod


def test_no_node_fits(place: Playground, tiny_path: str) -> None:
    second(place, tiny_path, worker={"nodeSelector": on("nowhere")})

    check_blameless(place, "Unschedulable", "NoCapacity", words="didn't match Pod's node affinity/selector")


def test_a_claim_is_missing(place: Playground, tiny_path: str) -> None:
    second(place, "", source={"uri": f"pvc://nowhere/{tiny_path}"})

    check_blameless(place, "SourceNotFound", words="PersistentVolumeClaim 'nowhere' of spec.source.uri does not exist")


def test_a_quota_refuses_the_pod(place: Playground, tiny_path: str) -> None:
    place.run("create", "quota", "one", "--hard=pods=1")
    try:
        second(place, tiny_path)

        check_blameless(place, "FailedCreate", "NoCapacity", words="exceeded quota: one")
    finally:
        place.run("delete", "quota", "one")


def test_pod_security_refuses_the_pod(place: Playground, tiny_path: str) -> None:
    """A directory of the node as the source: the operator allows it, the namespace's Pod Security does not."""
    second(place, "", source={"uri": f"hostpath://{place.folder}/{tiny_path}"})

    check_blameless(place, "FailedCreate", words='violates PodSecurity "restricted:latest"')


def test_an_image_does_not_come_before_the_deadline(place: Playground, tiny_path: str) -> None:
    second(place, tiny_path, deadline=LONG, worker={"image": UNPULLABLE})

    check_blameless(place, "ImagePullFailed", words=UNPULLABLE)


@pytest.mark.long
def test_an_image_does_not_come_by_the_deadline_and_the_model_goes_back(place: Playground, tiny_path: str) -> None:
    second(place, tiny_path, worker={"image": UNPULLABLE})

    place.wait_condition(NAME, "RolledBack")

    assert [entry["reason"] for entry in place.model(NAME)["status"]["quarantine"]] == ["ImagePullFailed"]


@pytest.mark.long
def test_a_node_is_not_ready(place: Playground, bad_path: Callable[[str], str]) -> None:
    second(place, bad_path("hang-in-load"), deadline=LONG, worker={"nodeSelector": on("node2")})
    the_second_pod(place)

    with nodes.silent_kubelet(images.running(), "node2"):
        check_blameless(place, "NodeNotReady", "Unschedulable", "NoCapacity", words="node")
    wait_for("node2 to be back", lambda: nodes.is_ready(place.kubectl, "node2"))


@pytest.mark.long
def test_a_pod_is_evicted_for_the_storage_it_takes(place: Playground, bad_path: Callable[[str], str]) -> None:
    limits = {**RESOURCES["limits"], "ephemeral-storage": "1Mi"}
    second(place, bad_path("hang-in-load"), deadline=LONG, worker={"resources": {**RESOURCES, "limits": limits}})
    pod = the_second_pod(place)["metadata"]["name"]
    fill = "open('/tmp/filled', 'wb').write(bytes(8 * 2**20))"
    place.run("exec", pod, "-c", "worker", "--", "python3", "-c", fill)

    check_blameless(place, "Evicted", "Staging", "Loading", words="exceeds the total limit of containers 1Mi")
    assert place.get("pod", pod)["status"]["phase"] in {"Failed", "Succeeded"}  # its worker may well end in peace


@pytest.mark.long
def test_a_pod_is_preempted(place: Playground, bad_path: Callable[[str], str], cluster: Target) -> None:
    """Someone more important takes the GPU while the new version loads."""
    with fake_gpus("node2"):
        second(place, bad_path("hang-in-load"), deadline=LONG, worker={"resources": resources()})
        pod = the_second_pod(place)["metadata"]["name"]

        with more_important(place, cluster.worker_image):
            wait_for("the pod to be preempted", lambda: is_going(place, pod))
            check_blameless(place, "Unschedulable", "NoCapacity", words=f"Insufficient {gpus.RESOURCE}")


@contextlib.contextmanager
def more_important(place: Playground, image: str) -> Iterator[None]:
    """A pod of a higher priority that wants a GPU, while the context lasts."""
    priority = f"{place.namespace}-high"
    container = {
        "name": "main",
        "image": image,
        "command": ["python3", "-c", "import signal; signal.pause()"],
        "resources": {"limits": WANTS_ONE},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "priorityClassName": priority,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    scheduling = "scheduling.k8s.io/v1"
    place.kubectl.apply(
        {"apiVersion": scheduling, "kind": "PriorityClass", "metadata": {"name": priority}, "value": 1000},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "important", "namespace": place.namespace},
            "spec": spec,
        },
    )
    try:
        yield
    finally:
        place.run("delete", "pod", "important", "--wait=true")
        place.kubectl.run("delete", "priorityclass", priority)


def is_going(place: Playground, pod: str) -> bool:
    """Whether the pod has gone, or is about to because the scheduler took its place away."""
    found = place.get("pod", pod)
    if found is None:
        return True
    told = {condition["type"]: condition.get("reason") for condition in found["status"].get("conditions", [])}
    return told.get("DisruptionTarget") == "PreemptionByScheduler"

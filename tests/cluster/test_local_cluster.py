"""What the local cluster gives to those who try things on it: names, Services, separate nodes, images, fake GPUs."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dev.audit import AuditLog
from dev.cluster import archive, gpus, images
from dev.cluster.__main__ import main
from dev.cluster.kubectl import apply, get, kubectl
from dev.cluster.plan import Cluster
from dev.waiting import wait_for

TOOLS = "localhost/cosyvoice-cluster/busybox:test"
BUSYBOX = Path("/bin/busybox")
SERVE = "mkdir /tmp/www && hostname >/tmp/www/index.html && exec httpd -f -p 8000 -h /tmp/www"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture(scope="module")
def local() -> Cluster:
    """The local cluster, which `make test` brings up before the tests."""
    return images.running()


@pytest.fixture(scope="module")
def tools(local: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of an image with a shell and its usual commands."""
    target = tmp_path_factory.mktemp("tools") / "busybox.tar"
    images.load(target, TOOLS, archive.write(target, TOOLS, BUSYBOX), local)
    return TOOLS


@pytest.fixture
def namespace(local: Cluster) -> Iterator[str]:
    name = f"local-{secrets.token_hex(4)}"
    apply(local, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    wait_for("the default ServiceAccount", lambda: get(local, "serviceaccounts", "-n", name)["items"])
    yield name
    kubectl(local, "delete", "namespace", name, "--wait=false")


Starts = Callable[..., None]


@pytest.fixture
def start(local: Cluster, namespace: str, tools: str) -> Starts:
    """Creates a pod that runs a shell command; `wait` is the condition to wait for."""

    def create(name: str, command: str, *, wait: str = "Ready", **spec: Any) -> None:
        container = {
            "name": "main",
            "image": tools,
            "imagePullPolicy": "Never",
            "args": ["sh", "-c", command],
            "securityContext": RESTRICTED,
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *spec.pop("mounts", [])],
            "resources": spec.pop("resources", {}),
        }
        volumes = [{"name": "tmp", "emptyDir": {}}, *spec.pop("volumes", [])]
        body = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 0, **spec}
        metadata = {"name": name, "namespace": namespace, "labels": {"app": "test"}}
        apply(local, [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}])
        if wait:
            kubectl(local, "wait", f"--for=condition={wait}", f"pod/{name}", "-n", namespace, "--timeout=60s")

    return create


def inside(local: Cluster, namespace: str, pod: str, command: str) -> str:
    """The output of a shell command in a pod."""
    return kubectl(local, "exec", pod, "-n", namespace, "--", "/busybox", "sh", "-c", command)


def test_each_node_offers_its_share_of_the_machine(local: Cluster) -> None:
    nodes = get(local, "nodes")["items"]
    share = (os.cpu_count() or 1) * 1000 // local.node_count

    assert [node["metadata"]["name"] for node in nodes] == [node.name for node in local.nodes]
    for node in nodes:
        cpu = node["status"]["allocatable"]["cpu"]
        assert abs(int(cpu.removesuffix("m")) * (1 if cpu.endswith("m") else 1000) - share) <= 1


def test_up_does_nothing_to_a_cluster_that_is_up(local: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    before = get(local, "nodes")

    assert main(["up", "--nodes", str(local.node_count)]) == 0

    boots = [node["status"]["nodeInfo"] for node in before["items"]]
    assert [node["status"]["nodeInfo"] for node in get(local, "nodes")["items"]] == boots
    assert f"export KUBECONFIG={local.kubeconfig}" in capsys.readouterr().out


def test_up_with_other_nodes_asks_to_take_the_cluster_down_first(
    local: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--nodes", "7"]) == 1

    assert "7 were asked for: take it down first" in capsys.readouterr().err


def test_pods_of_every_node_reach_every_pod_by_the_name_of_the_service(
    local: Cluster, namespace: str, start: Starts
) -> None:
    for node in local.nodes:
        start(node.name, SERVE, nodeName=node.name)
    service = {"selector": {"app": "test"}, "ports": [{"port": 80, "targetPort": 8000}]}
    metadata = {"name": "web", "namespace": namespace}
    apply(local, [{"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service}])
    names = {node.name for node in local.nodes}
    resolve = f"nslookup web.{namespace}.svc.cluster.local | sed -n 's/^Address: //p' | tail -1"
    ask = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 $({resolve}) 80 | tail -1"

    for node in local.nodes:
        answers: set[str] = set()
        wait_for(
            f"answers of {names} on {node.name}",
            lambda pod=node.name, seen=answers: (
                seen.update(inside(local, namespace, pod, ask).split()) or seen == names
            ),
        )


def test_what_is_written_to_shared_memory_stays_on_its_node(local: Cluster, namespace: str, start: Starts) -> None:
    marker = f"/node-shm/{namespace}"
    for node in local.nodes:
        start(
            node.name,
            "sleep 1000",
            nodeName=node.name,
            mounts=[{"name": "shm", "mountPath": "/node-shm"}],
            volumes=[{"name": "shm", "hostPath": {"path": "/dev/shm"}}],
        )
    first, *others = local.nodes

    inside(local, namespace, first.name, f"echo mine >{marker}")

    for node in others:
        assert inside(local, namespace, node.name, f"[ -e {marker} ] || echo none").strip() == "none"
    assert not Path("/dev/shm", namespace).exists()
    inside(local, namespace, first.name, f"rm {marker}")


def test_an_image_is_imported_once(local: Cluster, tools: str, tmp_path: Path) -> None:
    target = tmp_path / "busybox.tar"
    image_id = archive.write(target, tools, BUSYBOX)

    assert images.load(target, tools, image_id, local) is False
    assert images.present(tools, image_id, local)


def test_a_changed_image_replaces_the_one_of_its_name(local: Cluster, tmp_path: Path) -> None:
    reference = "localhost/cosyvoice-cluster/changing:test"
    binary = tmp_path / "program"
    ids = []
    for _ in range(2):
        binary.write_bytes(secrets.token_bytes(8))
        target = tmp_path / "image.tar"
        ids.append(archive.write(target, reference, binary))
        assert images.load(target, reference, ids[-1], local) is True

    assert images.present(reference, ids[1], local)
    assert not images.present(reference, ids[0], local)


def test_fake_gpus_are_scheduled_by(local: Cluster, namespace: str, start: Starts) -> None:
    wanted = {"limits": {gpus.RESOURCE: "1"}}
    try:
        gpus.set_gpus(local, 1, (local.nodes[0].name,))
        start("lucky", "sleep 1000", resources=wanted)
        start("waiting", "sleep 1000", resources=wanted, wait="")
        reason = wait_for(
            "a verdict of the scheduler",
            lambda: [
                one["message"]
                for one in get(local, "pod/waiting", "-n", namespace)["status"].get("conditions", [])
                if one["type"] == "PodScheduled"
            ],
        )
        assert f"Insufficient {gpus.RESOURCE}" in reason[0]
        assert get(local, "pod/lucky", "-n", namespace)["spec"]["nodeName"] == local.nodes[0].name
    finally:
        gpus.set_gpus(local, 0)


def test_containers_that_crash_come_back_within_seconds(local: Cluster, namespace: str, start: Starts) -> None:
    start("crashing", "exit 3", wait="")

    def restarts() -> bool:
        statuses = get(local, "pod/crashing", "-n", namespace)["status"].get("containerStatuses", [])
        return bool(statuses) and statuses[0]["restartCount"] >= 5

    # With the default back-off the fifth restart would come after five minutes.
    wait_for("the fifth restart", restarts, timeout=120)


def test_the_audit_log_has_every_request(local: Cluster, namespace: str) -> None:
    log = AuditLog(local.audit_log)
    log.mark()

    kubectl(local, "create", "configmap", "noted", "-n", namespace)

    wait_for(
        "the request in the audit log",
        lambda: [str(one) for one in log.since_mark() if (one.verb, one.name) == ("create", "noted")],
    )


def test_logs_are_read_through_the_api_server(local: Cluster, namespace: str, start: Starts) -> None:
    start("talking", "echo spoken; sleep 1000")

    assert kubectl(local, "logs", "talking", "-n", namespace) == "spoken\n"


def test_status_tells_where_everything_is(local: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0

    told = capsys.readouterr().out
    for path in (local.kubeconfig, local.audit_log, local.logs):
        assert str(path) in told


def test_a_cluster_that_was_never_up_is_named_in_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--name", "nobodys"]) == 1

    assert "there is no cluster 'nobodys': bring it up with" in capsys.readouterr().err


def test_the_kubeconfig_is_for_its_owner_alone(local: Cluster) -> None:
    assert local.kubeconfig.stat().st_mode & 0o077 == 0
    assert json.loads(local.kubeconfig.read_text())["clusters"][0]["cluster"]["server"] == local.api_url

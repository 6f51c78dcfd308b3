"""The operator as a process: watches, resyncs, the lease, and a clean end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.control_plane import OPERATOR, ControlPlane, free_port
from tests.apiserver.operator_process import OperatorProcess, eventually

LEASE = ("--lease-namespace=cosyvoice-system",)
Start = Callable[..., OperatorProcess]


@pytest.fixture
def start(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Start]:
    """Starts operators; none survives the test."""
    started: list[OperatorProcess] = []

    def run(identity: str, *flags: str) -> OperatorProcess:
        started.append(OperatorProcess(control_plane, tmp_path / f"{identity}.log", namespace, identity, *flags))
        return started[-1]

    yield run
    for process in started:
        process.kill()


def apply(plane: ControlPlane, namespace: str, **spec: Any) -> None:
    wanted = {"version": "v1", "source": {"uri": "pvc://voices/model"}, **spec}
    kind = {"apiVersion": "cosyvoice.dev/v1alpha1", "kind": "CosyVoiceModel"}
    text = yaml.safe_dump({**kind, "metadata": {"name": "narrator", "namespace": namespace}, "spec": wanted})
    done = plane.kubectl("apply", "-f", "-", stdin=text)
    assert done.returncode == 0, done.stderr


def get(plane: ControlPlane, namespace: str, kind: str, name: str = "narrator") -> Any:
    """The object, or None."""
    done = plane.kubectl("-n", namespace, "get", kind, name, "-o", "json")
    return json.loads(done.stdout) if done.returncode == 0 else None


def test_it_follows_the_models_and_their_children_and_ends_cleanly(
    control_plane: ControlPlane, namespace: str, start: Start
) -> None:
    operator = start("only")
    apply(control_plane, namespace)
    deployment = eventually("the Deployment", lambda: get(control_plane, namespace, "deployment"))
    assert operator.health() == 200
    assert 'cosyvoice_operator_models{reason="SourceNotFound"} 1.0' in operator.metrics()

    control_plane.kubectl("-n", namespace, "delete", "service", "narrator")
    eventually("the Service again", lambda: get(control_plane, namespace, "service"))
    control_plane.kubectl("-n", namespace, "set", "image", "deployment/narrator", "worker=evil:1")
    template = deployment["spec"]["template"]
    eventually(
        "the template as it was", lambda: get(control_plane, namespace, "deployment")["spec"]["template"] == template
    )

    assert operator.stop() == 0
    facts = {(entry["message"], entry.get("kind")) for entry in operator.entries()}
    assert {("created", "Deployment"), ("created", "Service"), ("changed", "Deployment")} <= facts
    assert [entry for entry in operator.entries() if entry["level"] == "error"] == []


def test_an_empty_label_on_an_object_of_anyone_s_makes_no_pass(
    control_plane: ControlPlane, namespace: str, start: Start
) -> None:
    operator = start("only")
    eventually("it to lead", operator.leads)
    nameless = ("create", "configmap", "nameless")
    assert control_plane.kubectl("-n", namespace, *nameless).returncode == 0
    assert control_plane.kubectl("-n", namespace, "label", "configmap/nameless", "cosyvoice.dev/model=").returncode == 0

    apply(control_plane, namespace)
    eventually("the Deployment", lambda: get(control_plane, namespace, "deployment"))
    operator.stop()

    assert [entry for entry in operator.entries() if entry["level"] in {"error", "warning"}] == []


def test_resyncs_without_cause_write_nothing(control_plane: ControlPlane, namespace: str, start: Start) -> None:
    operator = start("only", "--resync-seconds=1")
    apply(control_plane, namespace)
    eventually("the Deployment", lambda: get(control_plane, namespace, "deployment"))
    passes = 'cosyvoice_operator_api_requests_total{code="200",kind="Deployment",verb="get"}'

    def count() -> float:
        lines = [line for line in operator.metrics().splitlines() if line.startswith(passes)]
        return float(lines[0].split()[-1]) if lines else 0.0

    settled = count() + 2
    eventually("the passes that follow the last write", lambda: count() > settled)
    before, seen = control_plane.writes(namespace), count()
    eventually("ten more passes", lambda: count() >= seen + 10)

    assert control_plane.writes(namespace) == before


def test_one_leads_and_the_next_takes_over_at_once_when_it_is_told_to_go(
    control_plane: ControlPlane, namespace: str, start: Start
) -> None:
    control_plane.kubectl("-n", "cosyvoice-system", "delete", "lease", "cosyvoice-operator", "--ignore-not-found")
    first = start("first", *LEASE)
    eventually("the first to lead", first.leads)
    second = start("second", *LEASE)
    eventually("the second to be healthy", lambda: second.health() == 200)
    apply(control_plane, namespace)
    eventually("the Deployment", lambda: get(control_plane, namespace, "deployment"))
    assert not second.leads()

    assert first.stop() == 0

    eventually("the second to lead", second.leads)
    lease = get(control_plane, "cosyvoice-system", "lease", "cosyvoice-operator")
    assert lease["spec"]["holderIdentity"] == "second"


def test_a_leader_that_lost_its_lease_ends_with_an_error(
    control_plane: ControlPlane, namespace: str, start: Start
) -> None:
    control_plane.kubectl("-n", "cosyvoice-system", "delete", "lease", "cosyvoice-operator", "--ignore-not-found")
    operator = start("robbed", *LEASE)
    eventually("it to lead", operator.leads)

    stolen = json.dumps({"spec": {"holderIdentity": "thief"}})
    lease = ("lease", "cosyvoice-operator", "--type=merge", f"--patch={stolen}")
    assert control_plane.kubectl("-n", "cosyvoice-system", "patch", *lease).returncode == 0

    assert operator.process.wait(timeout=60) == 1
    assert "lease ended: no longer ours" in [entry["message"] for entry in operator.entries()]


def test_its_rights_are_no_more_than_it_uses(control_plane: ControlPlane) -> None:
    def may(verb: str, resource: str) -> bool:
        resource, _, subresource = resource.partition("/")
        where = ("--all-namespaces", f"--subresource={subresource}", f"--as={OPERATOR}")
        done = control_plane.kubectl("auth", "can-i", verb, resource, *where)
        return done.stdout.strip() == "yes"

    assert may("patch", "deployments.apps")
    assert may("update", "cosyvoicemodels.cosyvoice.dev/status")
    for verb, resource in (
        ("get", "secrets"),
        ("delete", "deployments.apps"),
        ("delete", "pods"),
        ("create", "pods"),
        ("update", "cosyvoicemodels.cosyvoice.dev"),
        ("list", "nodes"),
        ("create", "pods/exec"),
        ("get", "leases.coordination.k8s.io"),
    ):
        assert not may(verb, resource), f"{verb} {resource}"


def run_in_vain(**environment: str) -> tuple[int, str]:
    """The exit code of an operator that cannot begin, and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "cosyvoice_operator", "run", f"--metrics-port={free_port()}"],
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "operator"), "HOME": "/nowhere", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


def test_without_a_cluster_it_says_what_to_set() -> None:
    code, said = run_in_vain()

    assert code == 64
    assert "no cluster to work on" in said
    assert "set KUBECONFIG" in said


def test_without_the_crd_it_says_what_to_apply(tmp_path: Path, control_plane: ControlPlane) -> None:
    config = yaml.safe_load(control_plane.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"{control_plane.server}/no/such/path"
    bare = tmp_path / "kubeconfig"
    bare.write_text(yaml.safe_dump(config))

    code, said = run_in_vain(KUBECONFIG=str(bare))

    assert code == 64
    assert said == (
        "cosyvoice-operator: the API server does not know cosyvoicemodels.cosyvoice.dev: "
        "apply crds/cosyvoicemodels.yaml first\n"
    )


def test_a_wrong_configuration_is_told_whole_and_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cosyvoice_operator", "run", "--device=tpu", "--health-port=0"],
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "operator")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 64
    assert done.stderr.splitlines() == [
        "cosyvoice-operator: --device: expected one of cuda, cpu, not 'tpu'",
        "cosyvoice-operator: --health-port: expected a port from 1 to 65535, not '0'",
    ]

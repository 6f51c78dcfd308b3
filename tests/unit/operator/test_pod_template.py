"""What a user lays over the pod template, and what may not be laid over it."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from cosyvoice_operator import eligibility, overlay, revision
from cosyvoice_operator.errors import InvalidSpecError
from cosyvoice_operator.manifests.template import pod_template
from tests.unit.operator.builders import POLICY, model

FULL: dict[str, Any] = {
    "metadata": {"labels": {"team": "radio"}, "annotations": {"sidecar.istio.io/inject": "false"}},
    "spec": {
        "schedulerName": "volcano",
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
                }
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "rack", "labelSelector": {}}}
                ]
            },
        },
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        "volumes": [{"name": "certificates", "configMap": {"name": "certificates"}}],
        "initContainers": [{"name": "stage", "volumeMounts": [{"name": "certificates", "mountPath": "/certificates"}]}],
        "containers": [
            {
                "name": "worker",
                "env": [{"name": "A", "value": "overlay"}],
                "resources": {"claims": [{"name": "gpu"}]},
                "volumeMounts": [{"name": "certificates", "mountPath": "/certificates", "readOnly": True}],
            },
            {"name": "logs", "image": "logs:1", "securityContext": {"runAsUser": 7}},
        ],
        "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["otel"]}],
        "dnsPolicy": "ClusterFirst",
        "dnsConfig": {"searches": ["example.com"]},
    },
}


def template(pod: dict[str, Any] | None = None, *, strategy: str = "RollingUpdate", **worker: Any) -> dict[str, Any]:
    wanted = worker if pod is None else {**worker, "podTemplate": pod}
    spec = model(worker=wanted, rollout={"strategy": strategy}).spec
    return pod_template("narrator", "0123456789", revision.resolve(spec, POLICY))


def named(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in entries}


def test_everything_that_may_be_laid_over_a_pod_is_there_and_valid() -> None:
    assert set(FULL["spec"]) == overlay._POD_FIELDS  # the table below is about the rest

    found = template(FULL, strategy="HotSwap", env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])

    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **found["metadata"]}, "spec": found["spec"]}
    kubernetes_validate.validate(pod, "1.34", strict=True)
    assert found["metadata"]["labels"]["team"] == "radio"
    assert found["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    spec, own = found["spec"], template(strategy="HotSwap")["spec"]
    containers = named([*spec["initContainers"], *spec["containers"]])
    assert list(containers) == ["stage", "stager", "worker", "logs"]
    assert named(containers["worker"]["env"])["A"]["value"] == "overlay"
    assert named(containers["worker"]["env"])["B"]["value"] == "2"
    assert containers["worker"]["resources"]["claims"] == [{"name": "gpu"}]
    for name in ("stage", "stager", "worker"):
        assert "certificates" in named(containers[name]["volumeMounts"])
    assert containers["logs"]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsUser": 7,
    }
    assert spec["volumes"][:-1] == own["volumes"]
    assert spec["topologySpreadConstraints"][0]["matchLabelKeys"] == ["pod-template-hash"]
    anti = "preferredDuringSchedulingIgnoredDuringExecution"
    assert spec["affinity"]["podAntiAffinity"][anti][:-1] == own["affinity"]["podAntiAffinity"][anti]


def test_who_lays_nothing_over_a_pod_gets_the_pod_and_the_revision_that_there_was() -> None:
    for nothing in ({}, {"metadata": {}, "spec": {}}, {"metadata": {"labels": {}}}):
        assert template(nothing) == template()
        assert revision.identity(model(worker={"podTemplate": nothing}).spec) == revision.identity(model().spec)


def test_another_overlay_is_another_revision_which_takes_new_pods() -> None:
    before, after = ({"metadata": {"annotations": {"a": value}}} for value in "12")

    assert revision.identity(model(worker={"podTemplate": before}).spec) != revision.identity(
        model(worker={"podTemplate": after}).spec
    )
    why = eligibility.obstacle(template(before, strategy="HotSwap"), template(after, strategy="HotSwap"))
    assert why == "its pod template differs in metadata.annotations.a"


@pytest.mark.parametrize(
    ("worker", "limits"),
    [
        ({}, {"nvidia.com/gpu": "1"}),
        ({"resources": {"limits": {"amd.com/gpu": 1}}}, {"amd.com/gpu": "1"}),
        ({"resources": {"limits": {"nvidia.com/mig-1g.10gb": 1}}}, {"nvidia.com/mig-1g.10gb": "1"}),
        ({"podTemplate": {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}}}, {}),
    ],
    ids=["nothing", "AMD", "MIG", "DRA"],
)
def test_a_model_on_cuda_asks_for_the_device_that_is_named(worker: dict[str, Any], limits: dict[str, str]) -> None:
    spec = model(engine={"device": "cuda"}, worker=worker).spec

    (container,) = pod_template("narrator", "0123456789", revision.resolve(spec, POLICY))["spec"]["containers"]

    assert {name: value for name, value in container["resources"]["limits"].items() if "/" in name} == limits


def spec_of(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def worker_with(**fields: Any) -> dict[str, Any]:
    return spec_of(volumes=[{"name": "mine", "emptyDir": {}}], containers=[{"name": "worker", **fields}])


def beside(**fields: Any) -> dict[str, Any]:
    return spec_of(containers=[{"name": "mine", "image": "mine:1", **fields}])


@pytest.mark.parametrize(
    ("pod", "field", "words"),
    [
        ({"metadata": {"labels": {"cosyvoice.dev/model": "x"}}}, "metadata.labels[cosyvoice.dev/model]", "finds"),
        ({"metadata": {"labels": {"app.kubernetes.io/component": "x"}}}, "metadata.labels", "choose another"),
        ({"metadata": {"labels": {"pod-template-hash": "x"}}}, "metadata.labels", "choose another"),
        ({"metadata": {"annotations": {"cosyvoice.dev/swap": "x"}}}, "metadata.annotations", "choose another"),
        (spec_of(nodeSelector={}), "spec.nodeSelector", "set spec.worker.nodeSelector instead"),
        (spec_of(hostNetwork=True), "spec.hostNetwork", "may not be changed; what may: affinity, "),
        (spec_of(securityContext={}), "spec.securityContext", "may not be changed"),
        (spec_of(volumes=[{"name": "weights", "emptyDir": {}}]), "spec.volumes[weights]", "a volume of this name"),
        (spec_of(volumes=[{"name": "a", "hostPath": {"path": "/"}}]), "spec.volumes[a].hostPath", "restricted"),
        (worker_with(command=["sh"]), "spec.containers[worker].command", "may not be changed"),
        (worker_with(livenessProbe={}), "spec.containers[worker].livenessProbe", "may not be changed"),
        (worker_with(image="x"), "spec.containers[worker].image", "set spec.worker.image instead"),
        (
            worker_with(resources={"limits": {}}),
            "spec.containers[worker].resources",
            "spec.worker.resources for limits",
        ),
        (worker_with(volumeMounts=[{"name": "weights", "mountPath": "/x"}]), "volumeMounts[/x]", "not shared"),
        (
            worker_with(volumeMounts=[{"name": "mine", "mountPath": "/dev/shm/"}]),
            "volumeMounts[/dev/shm/]",
            "in the way",
        ),
        (worker_with(volumeMounts=[{"name": "mine", "mountPath": "/tmp/x"}]), "volumeMounts[/tmp/x]", "in the way"),
        (spec_of(containers=[{"name": "stage"}]), "spec.containers[stage]", "stage of initContainers"),
        (spec_of(initContainers=[{"name": "stager"}]), "spec.initContainers[stager]", "name that"),
        (spec_of(containers=[{"name": "mine"}]), "spec.containers[mine].image", "needs an image"),
        (
            {"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/worker": "unconfined"}}},
            "metadata.annotations[container.apparmor",
            "AppArmor",
        ),
        (spec_of(affinity={"nodeAfinity": {}}), "spec.affinity.nodeAfinity", "nodeAffinity, podAffinity"),
        (spec_of(affinity={"podAntiAffinity": None}), "spec.affinity.podAntiAffinity", "expected an object"),
        (
            spec_of(affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": None}}),
            "podAntiAffinity.preferred",
            "expected a list",
        ),
        (spec_of(affinity={"podAffinity": {"preferred": []}}), "podAffinity.preferred", "no such field"),
        (
            spec_of(volumes=[{"name": "a", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]),
            "spec.volumes[a].projected",
            "service account",
        ),
        (worker_with(volumeMounts=[{"name": "mine", "mountPath": "/etc//cosyvoice"}]), "[/etc//cosyvoice]", "the way"),
        (worker_with(volumeMounts=[{"name": "mine", "mountPath": "/opt/../dev/shm"}]), "[/opt/../dev/shm]", "the way"),
        (worker_with(volumeMounts=[{"name": "mine", "mountPath": "/sys/fs/cgroup"}]), "[/sys/fs/cgroup]", "the way"),
        (beside(livenessProbe={"httpGet": {"port": 1, "host": "127.0.0.1"}}), "spec.containers[mine]", "host"),
        (
            beside(lifecycle={"preStop": {"tcpSocket": {"port": 1, "host": "10.0.0.1"}}}),
            "spec.containers[mine]",
            "host",
        ),
        (beside(securityContext={"privileged": True}), "securityContext.privileged", "may not be set"),
        (beside(securityContext={"runAsUser": 0}), "securityContext", "as root"),
        (beside(ports=[{"containerPort": 1, "hostPort": 1}]), "spec.containers[mine].ports", "port of the node"),
        (beside(ports=[{"containerPort": 8081}]), "spec.containers[mine].ports", "listens on 8081"),
    ],
)
def test_what_the_operator_relies_on_is_refused_by_name(pod: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidSpecError) as refused:
        template(pod)

    assert refused.value.field.startswith("spec.worker.podTemplate.")
    assert field in refused.value.field
    assert words in refused.value.message

"""The objects of a model: valid, restricted, and stable."""

from __future__ import annotations

import json
from typing import Any

import kubernetes_validate
import pytest

from cosyvoice_operator import manifests, names, revision
from cosyvoice_operator.desired import desired
from cosyvoice_operator.observed import Observed
from cosyvoice_operator.rollout import decide
from tests.unit.operator.builders import POLICY, START, model, serving, stored, target_of, workload

KUBERNETES = "1.31"  # the oldest that the product runs on


def rendered(**spec: Any) -> dict[str, dict[str, Any]]:
    """All objects of a new model, by kind."""
    asked = model(**spec)
    observed = Observed()
    return {one["kind"]: one for one in desired(asked, observed, decide(asked, observed, POLICY, START), POLICY)}


def pod_spec(**spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = rendered(**spec)["Deployment"]["spec"]["template"]["spec"]
    return found


EVERYTHING: dict[str, Any] = {
    "source": {"uri": "hostpath:///srv/models"},
    "engine": {"device": "cuda"},
    "worker": {
        "image": "mine:1",
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "antiAffinity": "Required",
        "runtimeClassName": "nvidia",
        "priorityClassName": "high",
        "serviceAccountName": "speaker",
        "imagePullSecrets": [{"name": "registry"}],
        "env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    },
    "access": {"apiKeysSecret": "speakers"},
    "service": {"type": "LoadBalancer", "port": 8080, "annotations": {"lb": "internal"}},
}


HOT: dict[str, Any] = {"rollout": {"strategy": "HotSwap"}, "engine": {"recycle": {"maxRequests": 9}}}


@pytest.mark.parametrize("kubernetes", [f"1.{minor}" for minor in range(31, 38)])
@pytest.mark.parametrize("spec", [{}, EVERYTHING, HOT], ids=["defaults", "everything", "hot swap"])
def test_every_object_is_valid_to_the_letter_on_every_kubernetes(spec: dict[str, Any], kubernetes: str) -> None:
    policy = revision.Policy(worker_image="w", allowed_host_paths=("/srv",))
    asked = model(**spec)
    for manifest in desired(asked, Observed(), decide(asked, Observed(), policy, START), policy):
        kubernetes_validate.validate(manifest, kubernetes, strict=True)


def test_the_revision_comes_before_the_deployment_that_mounts_it() -> None:
    assert list(rendered()) == ["ConfigMap", "Service", "PodDisruptionBudget", "Deployment"]


def test_every_object_goes_with_its_owner_and_carries_the_labels() -> None:
    for manifest in rendered().values():
        (owner,) = manifest["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("CosyVoiceModel", "model-uid", True)
        assert manifest["metadata"]["labels"]["cosyvoice.dev/model"] == "narrator"
        assert manifest["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "cosyvoice-operator"


def test_the_pods_fit_pod_security_restricted() -> None:
    spec = pod_spec()

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*spec["initContainers"], *spec["containers"]):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    assert {next(key for key in volume if key != "name") for volume in spec["volumes"]} == {
        "persistentVolumeClaim",
        "emptyDir",
        "configMap",
        "projected",
    }
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False


def test_the_source_is_mounted_read_only_and_into_staging_alone() -> None:
    spec = pod_spec()
    (stage,), (worker,) = spec["initContainers"], spec["containers"]

    (mount,) = [mount for mount in stage["volumeMounts"] if mount["name"] == "source"]
    assert mount == {"name": "source", "mountPath": "/source", "readOnly": True}
    assert all(mount["name"] != "source" for mount in worker["volumeMounts"])


@pytest.mark.parametrize("strategy", ["Auto", "HotSwap"])
def test_where_versions_may_be_swapped_a_second_stager_stays_beside_the_worker(strategy: str) -> None:
    spec = pod_spec(rollout={"strategy": strategy})
    stage, stager = spec["initContainers"]
    (worker,) = spec["containers"]

    assert (stager["name"], stager["args"], stager["restartPolicy"]) == ("stager", ["stage", "--follow"], "Always")
    assert "restartPolicy" not in stage
    assert stager["image"] == worker["image"]
    assert stager["volumeMounts"] == stage["volumeMounts"]
    assert stager["resources"] == {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "5Gi"}}


def test_elsewhere_nobody_stays_beside_the_worker() -> None:
    for strategy in ("RollingUpdate", "Replace"):
        assert [one["name"] for one in pod_spec(rollout={"strategy": strategy})["initContainers"]] == ["stage"]


def test_a_live_config_map_holds_whole_documents_and_may_change() -> None:
    both = manifests.live_config_map(model().identity, "r1", '{"a": 1}', '{"b": 2}')
    one = manifests.live_config_map(model().identity, "r1", '{"a": 1}', None)

    assert both["metadata"]["name"] == "narrator-r1-live"
    assert both["data"] == {"current.json": '{"a": 1}', "candidate.json": '{"b": 2}'}
    assert "immutable" not in both
    assert names.LABEL_REVISION not in both["metadata"]["labels"]
    assert not manifests.is_applied(one, both)
    kubernetes_validate.validate(both, KUBERNETES, strict=True)


def test_weights_live_in_memory_of_the_asked_size() -> None:
    (weights,) = [
        volume for volume in pod_spec(staging={"sizeLimit": "512Mi"})["volumes"] if volume["name"] == "weights"
    ]

    assert weights["emptyDir"] == {"medium": "Memory", "sizeLimit": "512Mi"}


def test_staging_is_never_throttled_and_the_worker_asks_for_its_gpu() -> None:
    spec = pod_spec(engine={"device": "cuda"})
    (stage,), (worker,) = spec["initContainers"], spec["containers"]

    assert stage["resources"]["requests"]["memory"] == stage["resources"]["limits"]["memory"] == "5Gi"
    assert "nvidia.com/gpu" not in stage["resources"]["limits"]
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_a_pod_sees_its_configuration_what_replaces_it_and_its_orders_in_one_volume() -> None:
    volumes = {volume["name"]: volume for volume in pod_spec()["volumes"]}
    name = names.revision_name("narrator", target_of(model()))

    revision_, live, order = volumes["config"]["projected"]["sources"]
    assert revision_["configMap"] == {"name": name, "items": [{"key": "model.json", "path": "model.json"}]}
    assert live["configMap"] == {"name": f"{name}-live", "optional": True}
    (item,) = order["downwardAPI"]["items"]
    assert item == {"path": "swap", "fieldRef": {"fieldPath": "metadata.annotations['cosyvoice.dev/swap']"}}


def test_api_keys_are_mounted_into_the_worker_alone_and_may_not_be_absent() -> None:
    spec = pod_spec(access={"apiKeysSecret": "speakers"}, rollout={"strategy": "HotSwap"})

    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["api-keys"]["secret"] == {"secretName": "speakers"}
    (worker,) = spec["containers"]
    assert worker["args"] == ["serve", "--api-keys", "/etc/cosyvoice/api-keys"]
    mounts = [{mount["name"]: mount for mount in one["volumeMounts"]} for one in (*spec["initContainers"], worker)]
    assert [mount.get("api-keys") for mount in mounts] == [
        None,
        None,
        {"name": "api-keys", "mountPath": "/etc/cosyvoice/api-keys", "readOnly": True},
    ]


def test_without_keys_nothing_of_them_is_there() -> None:
    spec = pod_spec()

    assert spec["containers"][0]["args"] == ["serve"]
    assert "api-keys" not in {volume["name"] for volume in spec["volumes"]}


def test_voices_may_be_absent() -> None:
    volumes = {volume["name"]: volume for volume in pod_spec()["volumes"]}

    assert volumes["voices"]["configMap"] == {"name": "narrator-voices", "optional": True}


@pytest.mark.parametrize(
    ("anti_affinity", "rule"),
    [
        ("Preferred", "preferredDuringSchedulingIgnoredDuringExecution"),
        ("Required", "requiredDuringSchedulingIgnoredDuringExecution"),
        ("None", None),
    ],
)
def test_replicas_keep_apart_within_their_revision(anti_affinity: str, rule: str | None) -> None:
    affinity = pod_spec(worker={"antiAffinity": anti_affinity}).get("affinity")

    if rule is None:
        assert affinity is None
        return
    (term,) = affinity["podAntiAffinity"][rule]
    term = term.get("podAffinityTerm", term)
    assert term["matchLabelKeys"] == ["pod-template-hash"]
    assert term["topologyKey"] == "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("RollingUpdate", (1, 0)), ("Replace", (0, 1)), ("HotSwap", (1, 0)), ("Auto", (1, 0))],
)
def test_surge_and_unavailable_are_always_written_out(strategy: str, expected: tuple[int, int]) -> None:
    rolling = rendered(rollout={"strategy": strategy})["Deployment"]["spec"]["strategy"]

    assert rolling["type"] == "RollingUpdate"
    assert (rolling["rollingUpdate"]["maxSurge"], rolling["rollingUpdate"]["maxUnavailable"]) == expected


def test_replicas_are_left_out_only_where_someone_else_scales_the_deployment() -> None:
    def deployment(autoscaled: bool) -> dict[str, Any]:
        observed = serving(target_of(model()), workload=workload(target_of(model()), autoscaled=autoscaled))
        return desired(model(), observed, decide(model(), observed, POLICY, START), POLICY)[-1]["spec"]

    assert deployment(autoscaled=False)["replicas"] == 2
    assert "replicas" not in deployment(autoscaled=True)


def test_a_stored_revision_is_applied_as_it_was_rendered() -> None:
    kept = stored(target_of(model()))
    observed = Observed(revisions=(kept,))

    found = desired(model(), observed, decide(model(), observed, POLICY, START), POLICY)

    assert [one["kind"] for one in found] == ["Service", "PodDisruptionBudget", "Deployment"]
    assert found[-1]["spec"]["template"] == kept.template


def test_the_revision_holds_what_the_deployment_runs() -> None:
    objects = rendered()
    config_map = objects["ConfigMap"]

    assert config_map["immutable"] is True
    assert json.loads(config_map["data"]["template.json"]) == objects["Deployment"]["spec"]["template"]
    assert config_map["metadata"]["name"] == names.revision_name("narrator", target_of(model()))
    assert config_map["metadata"]["labels"]["cosyvoice.dev/version"] == "v1"


def test_a_field_that_is_no_longer_asked_for_makes_the_object_differ() -> None:
    annotated = rendered(service={"annotations": {"lb": "internal"}})["Service"]

    assert manifests.is_applied(annotated, annotated)
    assert not manifests.is_applied(rendered()["Service"], annotated)


def test_names_of_63_characters_fit_everywhere() -> None:
    name = "a" * 63
    asked = model(name=name)
    for manifest in desired(asked, Observed(), decide(asked, Observed(), POLICY, START), POLICY):
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
        labels = {**manifest["metadata"]["labels"]}
        labels |= manifest["spec"]["template"]["metadata"]["labels"] if manifest["kind"] == "Deployment" else {}
        assert all(len(value) <= 63 for value in labels.values())

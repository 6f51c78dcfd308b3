"""What makes a revision, and what its defaults become."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_operator import revision
from cosyvoice_operator.errors import InvalidSpecError
from cosyvoice_operator.revision import GPU, Policy
from tests.unit.operator.builders import POLICY, model

DEFAULTS: dict[str, Any] = {
    "staging": {"medium": "Pod", "sizeLimit": "8Gi", "verify": "Once"},
    "engine": {"dtype": "auto", "preload": True, "fallbackToCPU": False, "warmUp": {"maxSeconds": 1}},
    "worker": {"replicas": 2, "antiAffinity": "Preferred", "resources": {}},
    "rollout": {"strategy": "RollingUpdate", "progressDeadlineSeconds": 600, "historyLimit": 5},
    "service": {"type": "ClusterIP", "port": 80},
    "paused": False,
}


def identity(**spec: Any) -> str:
    return revision.identity(model(**spec).spec)


def test_the_identity_of_a_spec_never_changes_between_releases() -> None:
    # Changing these values restarts the pods of every model of every user. They belong to schema 1.
    assert identity() == "5ab2d68f78"
    assert (
        identity(
            source={"uri": "pvc://voices/model", "digest": "sha256:" + "0" * 64},
            staging={"sizeLimit": "512Mi", "verify": "Always"},
            engine={"device": "cpu", "loadTimeoutSeconds": 30, "warmUp": {"texts": ["Hi."], "voice": "ann"}},
            worker={"image": "w:2", "resources": {"limits": {"memory": "2Gi"}}, "env": [{"name": "A", "value": "b"}]},
        )
        == "906b3504d3"
    )


def test_strategies_that_swap_add_one_bit_to_the_identity() -> None:
    plain, auto, hot = (identity(rollout={"strategy": name}) for name in ("Replace", "Auto", "HotSwap"))

    assert plain == identity()
    assert auto == hot == "ef4163ea82"


def test_defaults_written_out_ask_for_the_same_revision() -> None:
    assert identity(**DEFAULTS) == identity()


@pytest.mark.parametrize(
    "spec",
    [
        {"worker": {"replicas": 7}},
        {"paused": True},
        {"rollout": {"strategy": "Replace", "historyLimit": 0}},
        {"service": {"port": 8080, "annotations": {"a": "b"}}},
        {"staging": {"sizeLimit": "8192Mi"}},
        {"staging": {"sizeLimit": 8589934592}},
        {"engine": {}},
        {"engine": {"recycle": {}}},
        {"access": {}},
    ],
)
def test_what_does_not_change_what_runs_makes_no_new_revision(spec: dict[str, Any]) -> None:
    assert identity(**spec) == identity()


@pytest.mark.parametrize(
    "spec",
    [
        {"version": "v2"},
        {"source": {"uri": "pvc://voices/other"}},
        {"source": {"uri": "pvc://voices/model", "digest": "sha256:" + "0" * 64}},
        {"staging": {"sizeLimit": "9Gi"}},
        {"staging": {"verify": "Always"}},
        {"engine": {"device": "cpu"}},
        {"engine": {"dtype": "float32"}},
        {"engine": {"preload": False}},
        {"engine": {"warmUp": {"texts": ["Hi."]}}},
        {"worker": {"image": "worker:2"}},
        {"worker": {"antiAffinity": "None"}},
        {"worker": {"resources": {"limits": {"memory": "9Gi"}}}},
        {"worker": {"env": [{"name": "A", "value": "b"}]}},
        {"worker": {"nodeSelector": {"a": "b"}}},
        {"worker": {"tolerations": [{"operator": "Exists"}]}},
        {"worker": {"imagePullSecrets": [{"name": "a"}]}},
        {"worker": {"runtimeClassName": "nvidia"}},
        {"worker": {"priorityClassName": "high"}},
        {"worker": {"serviceAccountName": "speaker"}},
        {"access": {"apiKeysSecret": "speakers"}},
    ],
)
def test_what_changes_what_runs_makes_a_new_revision(spec: dict[str, Any]) -> None:
    assert identity(**spec) != identity()


@given(st.integers(1, 2**20))
def test_the_spelling_of_a_quantity_does_not_matter(mebibytes: int) -> None:
    def asked(memory: object) -> str:
        return identity(worker={"resources": {"requests": {"memory": memory}}})

    assert asked(f"{mebibytes}Mi") == asked(f"{mebibytes * 1024}Ki") == asked(mebibytes * 2**20)


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.text(max_size=5), max_size=4))
def test_the_order_in_which_something_is_written_does_not_matter(labels: dict[str, str]) -> None:
    turned = dict(reversed(labels.items()))

    assert identity(worker={"nodeSelector": labels}) == identity(worker={"nodeSelector": turned})


@pytest.mark.parametrize(
    ("asked", "requests", "limits"),
    [
        ({}, {"cpu": "500m", "memory": "5Gi"}, {"memory": "8Gi"}),
        ({"limits": {"memory": "2Gi"}}, {"cpu": "500m", "memory": "2Gi"}, {"memory": "2Gi"}),
        ({"requests": {"memory": "10Gi"}}, {"cpu": "500m", "memory": "10Gi"}, {"memory": "10Gi"}),
        ({"limits": {"cpu": "200m"}}, {"cpu": "200m", "memory": "5Gi"}, {"cpu": "200m", "memory": "8Gi"}),
        ({"requests": {"cpu": 4}}, {"cpu": "4", "memory": "5Gi"}, {"memory": "8Gi"}),
    ],
)
def test_default_resources_never_contradict_the_users(
    asked: dict[str, Any], requests: dict[str, str], limits: dict[str, str]
) -> None:
    resolved = revision.resolve(model(worker={"resources": asked}).spec, POLICY)

    assert (resolved.requests, resolved.limits) == (requests, limits)


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        ({}, "1"),
        ({"limits": {"nvidia.com/gpu": 2}}, "2"),
        ({"limits": {"amd.com/gpu": 1}}, None),
        ({"requests": {"kubernetes.io/odd": 1}}, "1"),
        ({"limits": {"ephemeral-storage": "1Gi"}}, "1"),
    ],
)
def test_cuda_asks_for_one_gpu_unless_a_device_is_named(asked: dict[str, Any], gpus: str | None) -> None:
    spec = model(engine={"device": "cuda"}, worker={"resources": asked}).spec

    assert revision.resolve(spec, POLICY).limits.get(GPU) == gpus


def test_a_cpu_asks_for_no_gpu() -> None:
    assert GPU not in revision.resolve(model().spec, POLICY).limits


@pytest.mark.parametrize(("request_", "stage"), [(None, "5Gi"), ("700Mi", "5Gi"), ("12Gi", "12Gi")])
def test_staging_gets_what_the_worker_requests_if_that_is_more(request_: str | None, stage: str) -> None:
    resources = {"requests": {"memory": request_}} if request_ else {}

    assert revision.resolve(model(worker={"resources": resources}).spec, POLICY).stage_memory == stage


@pytest.mark.parametrize(("device", "seconds"), [("cpu", 600), ("cuda", 120)])
def test_the_load_timeout_depends_on_the_device(device: str, seconds: int) -> None:
    assert revision.resolve(model(engine={"device": device}).spec, POLICY).load_timeout_seconds == seconds


def test_device_and_image_come_from_the_configuration_unless_the_user_names_them() -> None:
    policy = Policy(worker_image="configured:1", device="cuda")

    default = revision.resolve(model().spec, policy)
    named = revision.resolve(model(engine={"device": "cpu"}, worker={"image": "mine:1"}).spec, policy)

    assert (default.image, default.device) == ("configured:1", "cuda")
    assert (named.image, named.device) == ("mine:1", "cpu")


def test_a_directory_of_the_node_is_refused_with_what_is_allowed() -> None:
    policy = Policy(worker_image="w", allowed_host_paths=("/srv/models",))
    spec = model(source={"uri": "hostpath:///etc"}).spec

    with pytest.raises(InvalidSpecError) as refused:
        revision.resolve(spec, policy)

    assert str(refused.value) == (
        "spec.source.uri: 'hostpath:///etc' is a directory of the node that the operator does not allow (allowed: "
        "/srv/models): use pvc://CLAIM/PATH, or have the administrator add it with --allow-host-path"
    )


def test_float16_on_a_cpu_that_the_configuration_chose_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match=r"spec\.engine\.dtype: float16 needs device cuda"):
        revision.resolve(model(engine={"dtype": "float16"}).spec, POLICY)

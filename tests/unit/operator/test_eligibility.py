"""Which revisions a pod can load in place: those whose pods would be like it."""

from __future__ import annotations

from typing import Any

import pytest

from cosyvoice_operator import eligibility, manifests, revision
from cosyvoice_operator.revision import Policy
from tests.unit.operator.builders import POLICY, model, target_of

HOT = {"strategy": "HotSwap"}


def template(policy: Policy = POLICY, **spec: Any) -> dict[str, Any]:
    """The pod template of a spec whose pods may be swapped, unless it says otherwise."""
    asked = model(**{"rollout": HOT, **spec})
    return manifests.pod_template("narrator", target_of(asked), revision.resolve(asked.spec, policy))


@pytest.mark.parametrize(
    "spec",
    [
        {"version": "v2"},
        {"version": "v2", "source": {"uri": "pvc://voices/another/path"}},
        {"source": {"uri": "pvc://voices/model", "digest": "sha256:" + "0" * 64}},
        {"engine": {"dtype": "bfloat16", "loadTimeoutSeconds": 9, "warmUp": {"texts": ["Hi."]}, "preload": False}},
        {"engine": {"recycle": {"maxRequests": 5}}},
        {"staging": {"verify": "Always"}},
        {"rollout": {"strategy": "Auto"}},
    ],
)
def test_weights_and_engine_can_be_swapped(spec: dict[str, Any]) -> None:
    assert eligibility.obstacle(template(), template(**spec)) is None


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"source": {"uri": "pvc://other/model"}}, "spec.volumes[0].persistentVolumeClaim.claimName"),
        ({"staging": {"sizeLimit": "1Gi"}}, "spec.volumes[1].emptyDir.sizeLimit"),
        ({"worker": {"image": "w:2"}}, "spec.initContainers[0].image"),
        ({"worker": {"resources": {"limits": {"memory": "9Gi"}}}}, "spec.containers[0].resources.limits.memory"),
        ({"worker": {"env": [{"name": "A", "value": "b"}]}}, "spec.initContainers[0].env"),
        ({"worker": {"nodeSelector": {"zone": "a"}}}, "spec.nodeSelector"),
        ({"worker": {"serviceAccountName": "speaker"}}, "spec.serviceAccountName"),
        ({"rollout": {"strategy": "RollingUpdate"}}, "spec.initContainers"),
    ],
)
def test_anything_that_the_pod_was_made_with_cannot(spec: dict[str, Any], place: str) -> None:
    assert eligibility.obstacle(template(), template(**spec)) == f"its pod template differs in {place}"
    assert eligibility.obstacle(template(**spec), template()) is not None


def test_the_directory_of_the_node_is_part_of_the_pod() -> None:
    policy = Policy(worker_image="worker:1", device="cpu", allowed_host_paths=("/srv",))
    one, other = (template(policy, source={"uri": f"hostpath:///srv/{name}"}) for name in ("a", "b"))

    assert eligibility.obstacle(one, other) == "its pod template differs in spec.volumes[0].hostPath.path"


def test_pods_of_a_rolling_update_cannot_be_swapped_at_all() -> None:
    rolling = template(rollout={"strategy": "RollingUpdate"})

    assert "no container stager" in (eligibility.obstacle(rolling, rolling) or "")


@pytest.mark.parametrize("stored", [{}, {"spec": {}}, {"spec": {"initContainers": None}}, {"metadata": {}}])
def test_a_template_of_an_earlier_release_is_simply_not_swappable(stored: dict[str, Any]) -> None:
    assert eligibility.obstacle(stored, template()) is not None
    assert eligibility.obstacle(template(), stored) is not None

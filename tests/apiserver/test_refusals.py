"""Specs that cannot be carried out: told in the status, not sent over and over, and without harm to what runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import anyio
import pytest
import yaml

from cosyvoice_operator import names
from cosyvoice_operator.revision import Policy
from tests.apiserver.operator_process import eventually
from tests.apiserver.world import World, claim


async def test_what_the_api_server_refuses_is_told_and_not_sent_again(world: World) -> None:
    too_much = {"resources": {"requests": {"memory": "7Gi"}, "limits": {"memory": "2Gi"}}}
    await world.apply(worker=too_much)
    await world.settle()
    before = world.writes()

    for _ in range(5):
        await world.one_pass()

    status = await world.status()
    assert world.writes() == before
    assert status["reason"] == "InvalidSpec"
    assert status["message"] == (
        'Deployment narrator is refused by the API server: Deployment.apps "narrator" is invalid: '
        'spec.template.spec.containers[0].resources.requests: Invalid value: "7Gi": must be less than or equal to '
        "memory limit of 2Gi"
    )


async def test_a_refusal_is_tried_again_without_effect_and_without_a_word(world: World) -> None:
    world.patience = 2.0
    world.restart()
    await world.apply(worker={"resources": {"requests": {"memory": "7Gi"}, "limits": {"memory": "2Gi"}}})
    await world.settle()
    before = [write for write in world.writes() if not write.startswith("patch deployments")]

    for _ in range(6):
        await world.one_pass()

    assert [write for write in world.writes() if not write.startswith("patch deployments")] == before
    assert (await world.status())["reason"] == "InvalidSpec"


async def test_a_corrected_spec_ends_a_refusal(world: World) -> None:
    await world.apply(worker={"resources": {"requests": {"memory": "7Gi"}, "limits": {"memory": "2Gi"}}})
    await world.settle()

    await world.apply(worker={"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}})
    await world.settle()

    assert (await world.status())["reason"] != "InvalidSpec"
    assert "Deployment/narrator" in await world.children()


async def test_a_model_made_again_is_not_refused_for_what_its_namesake_asked(world: World) -> None:
    await world.apply(worker={"resources": {"requests": {"memory": "7Gi"}, "limits": {"memory": "2Gi"}}})
    await world.settle()

    await world.admin.delete(names.KIND, world.namespace, "narrator")
    for child in await world.children():  # there is no garbage collector here
        kind, _, name = child.partition("/")
        await world.admin.delete(kind, world.namespace, name)
    await world.apply()
    await world.settle()

    assert (await world.status())["reason"] == "SourceNotFound"
    assert "Deployment/narrator" in await world.children()


@pytest.fixture
async def frozen(world: World) -> AsyncIterator[World]:
    """A namespace with a model in it, in which a policy then denies every change of Services and Deployments."""
    await world.apply()
    await world.settle()
    everything = {"apiGroups": ["", "apps"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"]}
    where = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}},
        "resourceRules": [{**everything, "resources": ["services", "deployments"]}],
    }
    rule = {"expression": "false", "message": "change freeze"}
    policy = {"failurePolicy": "Fail", "matchConstraints": where, "validations": [rule]}
    binding = {"policyName": world.namespace, "validationActions": ["Deny"]}
    objects = [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": world.namespace},
            "spec": spec,
        }
        for kind, spec in (("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding))
    ]
    assert world.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects)).returncode == 0
    label = ("-n", world.namespace, "label", "service", "narrator", "frozen=yes")
    eventually("the policy to be obeyed", lambda: world.plane.kubectl(*label, "--dry-run=server").returncode != 0)
    yield world
    kinds = "validatingadmissionpolicy,validatingadmissionpolicybinding"
    world.plane.kubectl("delete", kinds, world.namespace)


async def test_several_refusals_are_all_remembered(frozen: World) -> None:
    await frozen.apply(worker={"replicas": 3}, service={"annotations": {"a": "b"}})

    await frozen.settle()

    status = await frozen.status()
    assert status["reason"] == "InvalidSpec"
    assert status["message"].startswith("Service narrator is refused by the API server: ")
    assert status["message"].endswith(" denied request: change freeze")


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_a_model_too_large_for_its_objects_is_told(world: World) -> None:
    env = [{"name": f"E{n}", "value": "\u00e9" * 15_000} for n in range(40)]
    spec = {"version": "v1", "source": {"uri": "pvc://voices/model"}, "worker": {"env": env}}
    metadata = {"name": "narrator", "namespace": world.namespace}
    large = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": spec}
    done = world.plane.kubectl("create", "-f", "-", stdin=json.dumps(large, ensure_ascii=False))
    assert done.returncode == 0, done.stderr

    await world.settle()

    status = await world.status()
    assert status["reason"] == "InvalidSpec"
    assert "ConfigMap" in status["message"]
    # The server answered before it had read everything, and hangs up half a second later; until then the client's
    # connection is closing, and would be found unclosed at the end of this test's event loop.
    await anyio.sleep(4)


async def test_a_bad_update_leaves_what_runs_in_repair(world: World) -> None:
    await world.apply()
    await world.settle()
    await world.report_rolled_out()
    await world.settle()
    before = (await world.child("Deployment"))["spec"]["template"]

    await world.apply(version="v2", worker={"resources": {"requests": {"memory": "7Gi"}, "limits": {"memory": "2Gi"}}})
    await world.settle()
    await world.admin.delete("Service", world.namespace, "narrator")
    await world.settle()

    assert (await world.status())["reason"] == "InvalidSpec"
    assert (await world.child("Deployment"))["spec"]["template"] == before
    assert await world.child("Service")


async def test_a_directory_of_the_node_needs_the_administrators_leave(world: World) -> None:
    await world.apply(source={"uri": "hostpath:///srv/models"})
    await world.settle()
    assert (await world.status())["reason"] == "InvalidSpec"
    assert await world.children() == []

    world.restart(Policy(worker_image="worker:1", device="cpu", allowed_host_paths=("/srv",)))
    await world.settle()

    volumes = (await world.child("Deployment"))["spec"]["template"]["spec"]["volumes"]
    assert volumes[0]["hostPath"] == {"path": "/srv/models", "type": "Directory"}


async def test_a_missing_claim_is_named_and_noticed_once_it_is_there(world: World) -> None:
    await world.apply()
    await world.settle()
    assert (await world.status())["reason"] == "SourceNotFound"

    await world.admin.create(claim(world.namespace))
    await world.settle()

    assert (await world.status())["reason"] == "Creating"


async def test_what_only_the_operator_can_see_is_wrong_is_told(world: World) -> None:
    await world.apply(staging={"sizeLimit": "1e1000"})

    await world.settle()

    status = await world.status()
    assert status["reason"] == "InvalidSpec"
    assert status["message"] == (
        "spec.staging.sizeLimit: '1e1000' is no quantity: expected a number with an optional suffix such as 500m, 8Gi "
        "or 2e9"
    )
    assert await world.children() == []

"""Whose objects are touched, what is refused, and what stays behind."""

from __future__ import annotations

from typing import Any

import pytest

from cosyvoice_operator import names
from cosyvoice_operator.errors import ConflictError
from cosyvoice_operator.revision import Policy
from tests.apiserver.world import World


def foreign(world: World, kind: str, name: str = "narrator") -> dict[str, Any]:
    """An object of someone else under a name that is ours."""
    specs: dict[str, dict[str, Any]] = {
        "Service": {"spec": {"ports": [{"port": 1234}]}},
        "PodDisruptionBudget": {"spec": {"maxUnavailable": 5, "selector": {"matchLabels": {"a": "b"}}}},
        "ConfigMap": {"data": {"theirs": "1"}},
        "Deployment": {
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "theirs", "image": "theirs:1"}]},
                },
            }
        },
    }
    versions = {"Deployment": "apps/v1", "PodDisruptionBudget": "policy/v1"}
    metadata = {"name": name, "namespace": world.namespace}
    return {"apiVersion": versions.get(kind, "v1"), "kind": kind, "metadata": metadata, **specs[kind]}


@pytest.mark.parametrize("kind", ["Service", "PodDisruptionBudget", "Deployment", "ConfigMap"])
async def test_an_object_of_another_owner_is_left_alone(world: World, kind: str) -> None:
    name = "narrator-5ab2d68f78" if kind == "ConfigMap" else "narrator"
    theirs = await world.admin.create(foreign(world, kind, name))
    await world.apply()

    await world.settle()

    status = await world.status()
    assert status["reason"] == "NameConflict"
    assert status["message"] == (
        f"{kind} {world.namespace}/{name} exists and is not owned by this CosyVoiceModel; delete it or give the model "
        "another name"
    )
    assert (await world.child(kind, name))["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
    assert await world.children() == []
    assert [text.split(":")[0] for text in await world.events()] == ["Warning NameConflict"]


async def test_once_the_other_object_is_gone_the_model_gets_its_own(world: World) -> None:
    await world.admin.create(foreign(world, "Service"))
    await world.apply()
    await world.settle()

    await world.admin.delete("Service", world.namespace, "narrator")
    await world.settle()

    assert len(await world.children()) == 4
    assert (await world.status())["reason"] != "NameConflict"


async def test_a_model_made_again_waits_for_the_children_of_its_namesake(world: World) -> None:
    await world.apply()
    await world.settle()
    before = await world.child("Deployment")
    await world.admin.delete(names.KIND, world.namespace, "narrator")  # and there is no garbage collector here
    await world.apply()

    await world.settle()

    status = await world.status()
    assert status["reason"] == "WaitingForDeletion"
    assert (await world.child("Deployment"))["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_nothing_is_written_for_a_model_that_is_gone_or_going(world: World) -> None:
    await world.one_pass("never-was")
    await world.apply()
    await world.settle()
    await world.admin.apply(
        {**await bare(world), "metadata": {**(await bare(world))["metadata"], "finalizers": ["a/b"]}}
    )
    await world.admin.delete(names.KIND, world.namespace, "narrator")
    await world.admin.delete("Service", world.namespace, "narrator")
    before = world.writes()

    await world.one_pass()

    assert world.writes() == before


async def bare(world: World) -> dict[str, Any]:
    """The model with what identifies it alone."""
    metadata = {"name": "narrator", "namespace": world.namespace}
    spec = (await world.model())["spec"]
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": spec}


async def test_a_namespace_that_is_deleted_is_left_in_peace(world: World) -> None:
    await world.apply()
    await world.settle()
    world.plane.kubectl("delete", "namespace", world.namespace, "--wait=false")
    await world.admin.delete("Service", world.namespace, "narrator")
    before = await world.status()

    for _ in range(3):
        assert await world.one_pass() is None

    assert await world.status() == before


async def test_every_child_goes_with_the_model(world: World) -> None:
    """There is no garbage collector here; what it goes by is in place, and it blocks the owner's deletion."""
    await world.apply()
    await world.settle()
    uid = (await world.model())["metadata"]["uid"]

    for child in await world.children():
        kind, _, name = child.partition("/")
        (owner,) = (await world.child(kind, name))["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (uid, True, True)
    assert "finalizers" not in (await world.model())["metadata"]


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

    await world.admin.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "voices", "namespace": world.namespace},
            "spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    )
    await world.settle()

    assert (await world.status())["reason"] == "Creating"


async def test_old_revisions_go_and_the_ones_in_use_stay(world: World) -> None:
    for version in ("v1", "v2", "v3", "v4"):
        await world.apply(version=version, rollout={"historyLimit": 1})
        await world.settle()

    maps = await world.admin.list("ConfigMap", world.namespace, labels=names.LABEL_REVISION)

    kept = {raw["metadata"]["labels"][names.LABEL_VERSION] for raw in maps}
    assert len(maps) == 2
    assert "v4" in kept


async def test_a_status_is_never_written_over_a_newer_model(world: World) -> None:
    await world.apply()
    stale = await world.model()
    await world.apply(version="v2")

    with pytest.raises(ConflictError):
        await world.admin.replace({**stale, "status": {"reason": "Stale"}}, subresource="status")


async def test_a_status_written_by_hand_does_not_confuse_anyone(world: World) -> None:
    await world.apply()
    await world.settle()
    tampered = await world.model()
    tampered["status"] = {"conditions": [], "failures": [{"reason": "x"}], "ready": "many"}
    await world.admin.replace(tampered, subresource="status")

    await world.settle()

    assert (await world.status())["targetVersion"] == "v1"

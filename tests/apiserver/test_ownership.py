"""Whose objects are touched, what is refused, and what stays behind."""

from __future__ import annotations

from typing import Any

import pytest

from cosyvoice_operator import names
from cosyvoice_operator.errors import ConflictError
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


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Service", "narrator"),
        ("PodDisruptionBudget", "narrator"),
        ("Deployment", "narrator"),
        ("ConfigMap", "narrator-5ab2d68f78"),
        ("ConfigMap", "narrator-5ab2d68f78-live"),
    ],
)
async def test_an_object_of_another_owner_is_left_alone(world: World, kind: str, name: str) -> None:
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


async def test_old_revisions_go_and_the_ones_in_use_stay(world: World) -> None:
    for version in ("v1", "v2", "v3", "v4"):
        await world.apply(version=version, rollout={"historyLimit": 1})
        await world.settle()

    maps = await world.admin.list("ConfigMap", world.namespace, labels=names.LABEL_REVISION)

    kept = {raw["metadata"]["labels"][names.LABEL_VERSION] for raw in maps}
    assert len(maps) == 2
    assert "v4" in kept


async def test_a_relabelled_revision_makes_nobody_else_s_object_go(world: World) -> None:
    await world.apply(rollout={"historyLimit": 5})
    await world.settle()
    first = f"narrator-{(await world.status())['targetRevision']}"
    voices = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"ann.safetensors": "..."}}
    await world.admin.create({**voices, "metadata": {"name": "narrator-voices", "namespace": world.namespace}})
    label = ("label", "configmap", first, "cosyvoice.dev/revision=voices", "--overwrite")
    assert world.plane.kubectl("-n", world.namespace, *label).returncode == 0

    await world.apply(version="v2", rollout={"historyLimit": 0})
    await world.settle()

    assert await world.child("ConfigMap", "narrator-voices")


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

"""Passes over models on a real API server, under the operator's own RBAC."""

from __future__ import annotations

import json
from typing import Any

from cosyvoice_operator.revision import Policy
from tests.apiserver.world import World


async def test_a_new_model_gets_its_objects_and_nothing_is_written_afterwards(world: World) -> None:
    await world.apply()

    await world.settle()

    revision = (await world.status())["targetRevision"]
    assert await world.children() == [
        f"ConfigMap/narrator-{revision}",
        "Service/narrator",
        "PodDisruptionBudget/narrator",
        "Deployment/narrator",
    ]
    assert world.writes() == [
        "update cosyvoicemodels/status narrator",
        f"create events {await event_name(world)}".strip(),
        f"patch configmaps narrator-{revision}",
        "patch services narrator",
        "patch poddisruptionbudgets narrator",
        "patch deployments narrator",
    ]


async def event_name(world: World) -> str:
    (event,) = await world.admin.list("Event", world.namespace)
    return str(event["metadata"]["name"])


async def test_ten_idle_passes_write_nothing(world: World) -> None:
    await world.apply(
        worker={
            "env": [{"name": "EMPTY", "value": ""}],
            "resources": {"requests": {"memory": "1024Mi", "cpu": "0.5"}, "limits": {"memory": "4096Mi"}},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
            "nodeSelector": {"zone": "a"},
            "antiAffinity": "Required",
            "imagePullSecrets": [{"name": "registry"}],
        },
        staging={"sizeLimit": "512Mi"},
        service={"type": "NodePort", "annotations": {"a": "b"}},
        rollout={"strategy": "Replace", "historyLimit": 0, "progressDeadlineSeconds": 30},
    )
    await world.settle()
    await world.report_rolled_out()
    await world.settle()
    before = world.writes()

    for _ in range(10):
        await world.one_pass()
    world.restart()
    await world.one_pass()

    assert world.writes() == before
    assert (await world.status())["reason"] == "Ready"


async def test_writing_the_status_leaves_the_rest_of_the_model_as_it_is(world: World) -> None:
    await world.apply(worker={"env": [{"name": "A", "value": "b"}]})
    assert world.plane.kubectl("-n", world.namespace, "label", "cvm/narrator", "theirs=1").returncode == 0
    assert world.plane.kubectl("-n", world.namespace, "annotate", "cvm/narrator", "a/b=c").returncode == 0
    before = await world.model()

    await world.settle()

    after = await world.model()
    assert after["status"]["reason"]
    assert after["spec"] == before["spec"]
    assert [after["metadata"][field] for field in ("labels", "annotations", "generation")] == [
        before["metadata"][field] for field in ("labels", "annotations", "generation")
    ]
    assert {entry["manager"] for entry in before["metadata"]["managedFields"]} <= {
        entry["manager"] for entry in after["metadata"]["managedFields"]
    }


async def test_an_unchanged_apply_writes_nothing(world: World) -> None:
    await world.apply()
    await world.settle()
    before = world.writes()

    await world.apply()
    await world.one_pass()

    assert world.writes() == before


async def test_an_edit_makes_exactly_one_new_revision_and_going_back_none(world: World) -> None:
    await world.apply()
    await world.settle()
    first = (await world.status())["targetRevision"]

    await world.apply(version="v2")
    await world.settle()
    second = (await world.status())["targetRevision"]
    deployed = (await world.child("Deployment"))["spec"]["template"]["metadata"]["labels"]["cosyvoice.dev/revision"]

    assert first != second == deployed
    assert len(await world.admin.list("ConfigMap", world.namespace, labels="cosyvoice.dev/model")) == 2

    await world.apply()
    await world.settle()

    assert (await world.status())["targetRevision"] == first
    assert len(await world.admin.list("ConfigMap", world.namespace, labels="cosyvoice.dev/model")) == 2


async def test_scaling_makes_no_revision_and_reaches_the_deployment(world: World) -> None:
    await world.apply()
    await world.settle()

    done = world.plane.kubectl("-n", world.namespace, "scale", "cosyvoicemodel", "narrator", "--replicas=5")
    await world.settle()

    assert done.returncode == 0, done.stderr
    assert (await world.child("Deployment"))["spec"]["replicas"] == 5
    assert len(await world.admin.list("ConfigMap", world.namespace, labels="cosyvoice.dev/model")) == 1


async def test_an_upgrade_of_the_operator_renders_no_existing_revision_again(world: World) -> None:
    await world.apply()
    await world.settle()
    before = await world.child("Deployment")
    writes = world.writes()

    world.restart(Policy(worker_image="worker:2", device="cuda", stage_memory="1Gi"))
    await world.one_pass()

    assert world.writes() == writes
    assert (await world.child("Deployment"))["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]

    await world.apply(version="v2")
    await world.settle()
    (container,) = (await world.child("Deployment"))["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "worker:2"


async def test_drift_is_repaired_field_by_field(world: World) -> None:
    await world.apply()
    await world.settle()
    edits: dict[str, Any] = {
        "Deployment": {
            "spec": {
                "replicas": 9,
                "minReadySeconds": 0,
                "paused": True,
                "strategy": {"rollingUpdate": {"maxSurge": 3}},
            }
        },
        "Service": {
            "spec": {"ports": [{"name": "http", "port": 81, "targetPort": "http"}], "selector": {"nobody": "has-this"}}
        },
        "PodDisruptionBudget": {"spec": {"maxUnavailable": 2}},
    }
    for kind, edit in edits.items():
        plural = {"PodDisruptionBudget": "pdb"}.get(kind, kind.lower())
        patch = ("patch", plural, "narrator", "--type=merge", f"--patch={json.dumps(edit)}")
        done = world.plane.kubectl("-n", world.namespace, *patch)
        assert done.returncode == 0, done.stderr
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil:1"}]
    world.plane.kubectl(
        "-n", world.namespace, "patch", "deploy", "narrator", "--type=json", f"--patch={json.dumps(image)}"
    )

    await world.settle()

    deployment = await world.child("Deployment")
    assert (deployment["spec"]["replicas"], deployment["spec"]["minReadySeconds"]) == (2, 5)
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 1
    assert not deployment["spec"].get("paused")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "worker:1"
    assert [port["port"] for port in (await world.child("Service"))["spec"]["ports"]] == [80]
    assert "nobody" not in (await world.child("Service"))["spec"]["selector"]
    assert (await world.child("PodDisruptionBudget"))["spec"]["maxUnavailable"] == 1


async def test_what_is_deleted_by_hand_comes_back_as_it_was(world: World) -> None:
    await world.apply()
    await world.settle()
    before = await world.child("Deployment")
    revision = (await world.status())["targetRevision"]

    for kind, name in (("Deployment", "narrator"), ("Service", "narrator"), ("ConfigMap", f"narrator-{revision}")):
        await world.admin.delete(kind, world.namespace, name)
    await world.settle()

    assert len(await world.children()) == 4
    assert (await world.child("Deployment"))["spec"]["template"] == before["spec"]["template"]


async def test_a_deleted_revision_comes_back_as_it_runs_whatever_the_defaults_are_by_now(world: World) -> None:
    await world.apply()
    await world.settle()
    before = await world.child("Deployment")
    revision = (await world.status())["targetRevision"]

    world.restart(Policy(worker_image="worker:2", device="cuda", stage_memory="1Gi"))
    await world.admin.delete("ConfigMap", world.namespace, f"narrator-{revision}")
    await world.settle()

    after = await world.child("Deployment")
    assert after["spec"] == before["spec"]
    stored = json.loads((await world.child("ConfigMap", f"narrator-{revision}"))["data"]["template.json"])
    assert stored["spec"]["containers"][0]["image"] == "worker:1"


async def test_what_others_add_is_left_alone(world: World) -> None:
    await world.apply()
    await world.settle()
    add = {
        "metadata": {"labels": {"theirs": "1"}},
        "spec": {"template": {"metadata": {"annotations": {"restarted": "1"}}}},
    }
    world.plane.kubectl(
        "-n", world.namespace, "patch", "deploy", "narrator", "--type=merge", f"--patch={json.dumps(add)}"
    )
    before = world.writes()

    await world.one_pass()

    assert world.writes() == before


async def test_an_annotation_that_is_no_longer_asked_for_goes(world: World) -> None:
    await world.apply(service={"annotations": {"lb": "internal", "kept": "1"}})
    await world.settle()

    await world.apply(service={"annotations": {"kept": "1"}})
    await world.settle()

    annotations = (await world.child("Service"))["metadata"]["annotations"]
    assert "lb" not in annotations
    assert annotations["kept"] == "1"


async def test_an_autoscaler_of_the_deployment_keeps_what_it_set(world: World) -> None:
    await world.apply()
    await world.settle()
    done = world.plane.kubectl("-n", world.namespace, "scale", "deployment", "narrator", "--replicas=7")
    assert done.returncode == 0, done.stderr

    await world.apply(rollout={"historyLimit": 3})
    await world.settle()

    deployment = await world.child("Deployment")
    assert (deployment["spec"]["replicas"], deployment["spec"]["revisionHistoryLimit"]) == (7, 3)

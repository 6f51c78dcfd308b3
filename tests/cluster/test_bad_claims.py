"""Sources that cannot be mounted as the model wants it: told as such, never as a fault of the version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dev.playground import Playground

SINGLE = "single"


def exclusive_volume(namespace: str, folder: Path, node: str) -> list[dict[str, Any]]:
    """A volume that only `node` can mount, as those of most storage classes are, and the claim bound to it."""
    name = f"{namespace}-{SINGLE}"
    capacity = {"storage": "16Gi"}
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": capacity,
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "claimRef": {"namespace": namespace, "name": SINGLE},
                "hostPath": {"path": str(folder), "type": "Directory"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": SINGLE, "namespace": namespace},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "volumeName": name,
                "resources": {"requests": capacity},
            },
        },
    ]


def test_a_missing_claim_is_named(playground: Playground, tiny_path: str) -> None:
    playground.apply_model("lost", path=tiny_path, source={"uri": f"pvc://nowhere/{tiny_path}"})

    stalled = playground.wait_condition("lost", "Stalled", reason="SourceNotFound")

    assert stalled["message"] == (
        "v1: PersistentVolumeClaim 'nowhere' of spec.source.uri does not exist: create it, or correct the uri"
    )
    assert playground.model("lost")["status"]["message"] == stalled["message"]
    assert playground.condition("lost", "Degraded")["status"] == "False"


def test_a_claim_of_one_node_is_not_shared_by_replicas_on_two(playground: Playground, tiny_path: str) -> None:
    volume, claim = exclusive_volume(playground.namespace, playground.folder, "node1")
    playground.kubectl.apply(volume, claim)
    try:
        playground.apply_model(
            "torn",
            path=tiny_path,
            source={"uri": f"pvc://{SINGLE}/{tiny_path}"},
            worker={"replicas": 2, "antiAffinity": "Required"},
        )

        stalled = playground.wait_condition("torn", "Stalled", reason="SourceNotShareable")
        (kept_out,) = (pod for pod in playground.pods("torn") if "nodeName" not in pod["spec"])

        assert stalled["message"] == (
            "v1: PersistentVolumeClaim 'single' is ReadWriteOnce: only one node can mount it, and the replicas are to "
            "run on several. Use a claim with ReadOnlyMany or ReadWriteMany, or set spec.worker.replicas to 1, or keep "
            "the replicas on one node with spec.worker.nodeSelector and spec.worker.antiAffinity None "
            f"(pod {kept_out['metadata']['name']})"
        )
        assert playground.condition("torn", "Degraded")["status"] == "False"

        playground.run("scale", "cosyvoicemodel", "torn", "--replicas=1")  # as it was advised
        assert playground.wait_ready("torn")["status"]["ready"] == "1/1"
    finally:
        playground.run("delete", "cosyvoicemodel", "torn", "--ignore-not-found", "--wait=true")
        playground.kubectl.run("delete", "persistentvolume", volume["metadata"]["name"], "--wait=false")

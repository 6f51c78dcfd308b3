"""Where the demo's weights come from: a PersistentVolumeClaim named `voices` in the demo's namespace."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from dev.kubectl import Kubectl
from dev.models import prompt, tiny

CLAIM = "voices"
LOADER = "voices-loader"
TINY_NAME = "CosyVoice2-0.5B"
TINY_PROMPT_TEXT = "It is a prompt."


def make_tiny(folder: Path) -> tuple[Path, Path]:
    """The small model and a prompt recording below `folder`: (model directory, wav file)."""
    model = folder / "models" / TINY_NAME
    recording = folder / "prompt.wav"
    if not (model / "hift.pt").exists():
        tiny.write(model)
    prompt.write(recording)
    return model, recording


def shared_volume(namespace: str, folder: Path) -> list[dict[str, Any]]:
    """A read-only volume over a directory that every node of the local cluster sees, and the claim bound to it."""
    name = f"{namespace}-{CLAIM}"
    capacity = {"storage": "16Gi"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": capacity,
                "accessModes": ["ReadOnlyMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "claimRef": {"namespace": namespace, "name": CLAIM},
                "hostPath": {"path": str(folder), "type": "Directory"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM, "namespace": namespace},
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "storageClassName": "",
                "volumeName": name,
                "resources": {"requests": capacity},
            },
        },
    ]


def give_up_other_volume(kubectl: Kubectl, namespace: str, folder: Path) -> None:
    """Delete claim and volume where they show another folder than `folder`: neither can be changed to another one.

    The claim goes when no pod uses it any more, so the models of the namespace have to go first.
    """
    volume = kubectl.get("persistentvolume", f"{namespace}-{CLAIM}")
    if volume is None or volume["spec"]["hostPath"]["path"] == str(folder):
        return
    if kubectl.get("crd", "cosyvoicemodels.cosyvoice.dev") is not None:
        kubectl.run("-n", namespace, "delete", "cosyvoicemodels", "--all", "--wait=true")
    kubectl.run("-n", namespace, "delete", "persistentvolumeclaim", CLAIM, "--ignore-not-found", timeout=180)
    kubectl.run("delete", "persistentvolume", volume["metadata"]["name"], "--ignore-not-found")


def dynamic_claim(namespace: str) -> dict[str, Any]:
    """A claim of the cluster's default storage class. Most offer ReadWriteOnce only: the demo then runs one replica."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Gi"}}},
    }


def loader_pod(namespace: str, worker_image: str) -> dict[str, Any]:
    """A pod that holds the claim writable while `upload` unpacks a model into it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": LOADER, "namespace": namespace},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "fsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "loader",
                    "image": worker_image,
                    "command": ["python3", "-c", "import signal; signal.pause()"],
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    "volumeMounts": [{"name": CLAIM, "mountPath": "/voices"}],
                }
            ],
            "volumes": [{"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}],
        },
    }


def upload(kubectl: Kubectl, namespace: str, model: Path) -> None:
    """Stream the model directory into the claim through the loader pod, then remove the pod."""
    kubectl.run("-n", namespace, "wait", "--for=condition=Ready", f"pod/{LOADER}", "--timeout=300s", timeout=320)
    unpack = (
        "import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode='r|').extractall('/voices', filter='data')"
    )
    with subprocess.Popen(
        ["tar", "-C", str(model.parent), "-cf", "-", model.name],
        stdout=subprocess.PIPE,
    ) as tar:
        subprocess.run(
            [kubectl.program, "-n", namespace, "exec", "-i", LOADER, "--", "python3", "-c", unpack],
            stdin=tar.stdout,
            env=kubectl.environment,
            check=True,
        )
    kubectl.run("-n", namespace, "delete", "pod", LOADER, "--wait=true", "--grace-period=1")

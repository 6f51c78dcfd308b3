"""Sets of values that switch everything in the chart on."""

from __future__ import annotations

from typing import Any

EVERYTHING: dict[str, Any] = {
    "watchNamespaces": ["speech", "radio"],
    "replicas": 2,
    "images": {
        "registry": "registry.example.com/team/",
        "pullPolicy": "Always",
        "pullSecrets": [{"name": "pull"}],
        "operator": {"digest": "sha256:" + "ab" * 32},
        "worker": {"repository": "other/worker", "tag": "v7"},
    },
    "allowHostPaths": ["/srv/models", "/mnt/.a-b"],
    "extraEnv": [
        {"name": "A", "value": "1"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ],
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "control", "effect": "NoSchedule"}],
    "priorityClassName": "system-cluster-critical",
    "podAnnotations": {"note": "yes"},
    "podLabels": {"team": "speech"},
    "serviceAccount": {"annotations": {"role": "arn"}},
    "metrics": {
        "serviceMonitor": {"enabled": True, "interval": "15s", "labels": {"release": "prometheus"}},
        "podMonitor": {"enabled": True, "interval": "15s", "labels": {"release": "prometheus"}},
        "prometheusRule": {
            "enabled": True,
            "labels": {"release": "prometheus"},
            "runbook": "https://docs.example.com/alerts",
        },
        "dashboard": {"enabled": True, "labels": {"dashboards": "yes"}, "annotations": {"grafana_folder": "Speech"}},
    },
    "networkPolicy": {
        "enabled": True,
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
    },
    "nodeAgent": {
        "enabled": True,
        "namespace": "cosyvoice-nodes",
        "cgroupRoot": "/sys/fs/cgroup/kubepods.slice",
        "intervalSeconds": 2.5,
        "nodeSelector": {"gpu": "yes"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "priorityClassName": "system-node-critical",
        "seLinuxOptions": {"type": "spc_t"},
    },
    "test": {"models": ["narrator"], "voice": "ann"},
}
CLUSTER_WIDE: dict[str, Any] = EVERYTHING | {"watchNamespaces": []}

"""Values that cannot work are refused before anything is installed, by name."""

from __future__ import annotations

from typing import Any

import pytest

from dev.helm import HelmError
from tests.chart.conftest import Render

DIGEST = "sha256:" + "0" * 63

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"replica": 2}, "additional properties 'replica' not allowed"),
    ({"replicas": 3}, "at '/replicas': maximum: got 3, want 2"),
    ({"replicas": "one"}, "at '/replicas': got string, want integer"),
    ({"watchNamespaces": "speech"}, "at '/watchNamespaces': got string, want array"),
    ({"watchNamespaces": ["Speech"]}, "at '/watchNamespaces/0': 'Speech' does not match pattern"),
    ({"watchNamespaces": ["a", "a"]}, "at '/watchNamespaces': items at 0 and 1 are equal"),
    ({"fullnameOverride": "Voice"}, "at '/fullnameOverride': 'Voice' does not match pattern"),
    ({"crds": {"enable": True}}, "at '/crds': additional properties 'enable' not allowed"),
    ({"crds": {"keep": "yes"}}, "at '/crds/keep': got string, want boolean"),
    ({"image": {"tag": "1"}}, "additional properties 'image' not allowed"),
    ({"images": {"registry": "https://registry.example.com"}}, "at '/images/registry': 'https://"),
    ({"images": {"pullPolicy": "Sometimes"}}, "at '/images/pullPolicy': value must be one of 'IfNotPresent'"),
    ({"images": {"pullSecrets": ["regcred"]}}, "at '/images/pullSecrets/0': got string, want object"),
    ({"images": {"operator": {"digest": DIGEST}}}, "at '/images/operator/digest': 'sha256:000"),
    ({"images": {"worker": {"tag": "a b"}}}, "at '/images/worker/tag': 'a b' does not match pattern"),
    ({"images": {"worker": {"tag": 1.2}}}, "at '/images/worker/tag': got number, want string"),
    ({"modelDefaults": {"device": "tpu"}}, "at '/modelDefaults/device': value must be one of 'cuda', 'cpu'"),
    ({"modelDefaults": {"stageMemory": "5GB"}}, "at '/modelDefaults/stageMemory': '5GB' does not match pattern"),
    (
        {"modelDefaults": {"workerMemoryLimit": "0"}},
        "at '/modelDefaults/workerMemoryLimit': '0' does not match pattern",
    ),
    ({"modelDefaults": {"workerCpuRequest": -1}}, "at '/modelDefaults/workerCpuRequest': exclusiveMinimum: got -1"),
    ({"allowHostPaths": ["srv/models"]}, "at '/allowHostPaths/0': 'srv/models' does not match pattern"),
    ({"allowHostPaths": ["/srv/../etc"]}, "at '/allowHostPaths/0': '/srv/../etc' does not match pattern"),
    ({"resyncSeconds": 0}, "at '/resyncSeconds': minimum: got 0, want 1"),
    ({"resyncSeconds": 3600}, "at '/resyncSeconds': maximum: got 3,600, want 900"),
    ({"workers": 0}, "at '/workers': minimum: got 0, want 1"),
    ({"logLevel": "trace"}, "at '/logLevel': value must be one of 'debug'"),
    ({"extraEnv": {"A": "1"}}, "at '/extraEnv': got object, want array"),
    ({"extraEnv": [{"value": "1"}]}, "at '/extraEnv/0': missing property 'name'"),
    ({"resources": {"limits": {"memory": "512MB"}}}, "at '/resources/limits/memory': '512MB' does not match pattern"),
    ({"resources": {"limit": {}}}, "at '/resources': additional properties 'limit' not allowed"),
    ({"nodeSelector": {"gpu": True}}, "at '/nodeSelector/gpu': got boolean, want string"),
    ({"tolerations": [{"operator": "Exist"}]}, "at '/tolerations/0/operator': value must be one of 'Exists', 'Equal'"),
    ({"affinity": {"nodeAffinities": {}}}, "at '/affinity': additional properties 'nodeAffinities' not allowed"),
    ({"podLabels": {"a": 1}}, "at '/podLabels/a': got number, want string"),
    ({"metrics": {"enabled": True}}, "at '/metrics': additional properties 'enabled' not allowed"),
    ({"metrics": {"podMonitor": {"interval": "15"}}}, "at '/metrics/podMonitor/interval': '15' does not match pattern"),
    (
        {"metrics": {"prometheusRule": {"runbook": "docs"}}},
        "at '/metrics/prometheusRule/runbook': 'docs' does not match",
    ),
    (
        {"metrics": {"dashboard": {"labels": {"grafana_dashboard": 1}}}},
        "at '/metrics/dashboard/labels/grafana_dashboard': got number, want string",
    ),
    ({"networkPolicy": {"apiServerPorts": []}}, "at '/networkPolicy/apiServerPorts': minItems: got 0, want 1"),
    ({"networkPolicy": {"metricsFrom": [{}]}}, "at '/networkPolicy/metricsFrom/0': minProperties: got 0, want 1"),
    ({"test": {"text": ""}}, "at '/test/text': minLength: got 0, want 1"),
    ({"test": {"voice": "Ann"}}, "at '/test/voice': 'Ann' does not match pattern"),
    ({"test": {"timeoutSeconds": 5}}, "at '/test/timeoutSeconds': minimum: got 5, want 10"),
]


@pytest.mark.parametrize(("values", "message"), WRONG, ids=[str(values) for values, _ in WRONG])
def test_a_wrong_value_is_refused_by_name(render: Render, values: dict[str, Any], message: str) -> None:
    with pytest.raises(HelmError) as refusal:
        render(values)

    assert message in str(refusal.value)


def test_all_wrong_values_are_told_at_once(render: Render) -> None:
    with pytest.raises(HelmError) as refusal:
        render({"replicas": 3, "workers": 0, "logLevel": "trace"})

    assert all(f"at '/{name}'" in str(refusal.value) for name in ("replicas", "workers", "logLevel"))

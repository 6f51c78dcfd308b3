"""The node agent as the chart runs it: not unless asked for, and with nothing that it does not need."""

from __future__ import annotations

from typing import Any

import pytest

from cosyvoice_operator.nodeagent.__main__ import parse_arguments
from tests.chart.conftest import NAMESPACE, Objects, Render, only
from tests.chart.values import CLUSTER_WIDE, EVERYTHING

NAME = "cosyvoice-operator-node-agent"
ENABLED: dict[str, Any] = {"nodeAgent": {"enabled": True}}
KINDS = {"DaemonSet", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}


def of_the_agent(objects: Objects) -> Objects:
    return [one for one in objects if one["metadata"]["name"] == NAME]


def pod_of(objects: Objects) -> dict[str, Any]:
    spec: dict[str, Any] = only(objects, "DaemonSet")["spec"]["template"]["spec"]
    return spec


def container_of(objects: Objects) -> dict[str, Any]:
    (container,) = pod_of(objects)["containers"]
    return dict(container)


def test_it_is_there_only_where_it_is_asked_for(render: Render) -> None:
    assert of_the_agent(render()) == []
    assert {one["kind"] for one in of_the_agent(render(ENABLED))} == KINDS


def test_it_may_list_pods_and_nothing_else(render: Render) -> None:
    role = only(render(ENABLED), "ClusterRole", NAME)

    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]


def test_it_may_do_so_only_where_the_operator_looks(render: Render) -> None:
    roles = [one for one in of_the_agent(render(EVERYTHING)) if one["kind"] == "Role"]

    assert [role["metadata"]["namespace"] for role in roles] == ["speech", "radio"]
    assert [one for one in of_the_agent(render(EVERYTHING)) if one["kind"] == "ClusterRole"] == []


@pytest.mark.parametrize(
    ("values", "namespace"), [(ENABLED, NAMESPACE), (CLUSTER_WIDE, "cosyvoice-nodes")], ids=["release's", "its own"]
)
def test_account_and_pods_are_in_one_namespace_and_bound_there(
    render: Render, values: dict[str, Any], namespace: str
) -> None:
    objects = render(values)
    (binding,) = [one for one in of_the_agent(objects) if one["kind"] == "ClusterRoleBinding"]

    assert only(objects, "DaemonSet")["metadata"]["namespace"] == namespace
    assert only(objects, "ServiceAccount", NAME)["metadata"]["namespace"] == namespace
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}]


def test_it_is_root_without_any_capability_and_sees_the_cgroups_alone(render: Render) -> None:
    objects = render(ENABLED)
    pod, container = pod_of(objects), container_of(objects)

    assert pod["securityContext"] == {
        "runAsUser": 0,
        "runAsGroup": 0,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert pod["volumes"] == [{"name": "cgroup", "hostPath": {"path": "/sys/fs/cgroup", "type": "Directory"}}]
    assert container["volumeMounts"] == [{"name": "cgroup", "mountPath": "/node/cgroup"}]
    assert "ports" not in container


def test_nothing_of_the_operator_s_selects_it(render: Render) -> None:
    objects = render(EVERYTHING)
    labels = only(objects, "DaemonSet")["spec"]["template"]["metadata"]["labels"]
    selectors = [
        only(objects, "Deployment")["spec"]["selector"]["matchLabels"],
        only(objects, "Service")["spec"]["selector"],
    ]

    for selector in selectors:
        assert not selector.items() <= labels.items()


@pytest.mark.parametrize(
    ("values", "interval", "namespaces"),
    [(ENABLED, 5.0, ()), (EVERYTHING, 2.5, ("speech", "radio"))],
    ids=["defaults", "everything"],
)
def test_it_understands_the_environment_that_it_is_given(
    render: Render, values: dict[str, Any], interval: float, namespaces: tuple[str, ...]
) -> None:
    container = container_of(render(values))
    given = {one["name"]: one.get("value", "node1") for one in container["env"]}

    args = parse_arguments([], {**given, "KUBERNETES_SERVICE_HOST": "10.96.0.1"})

    assert (args.node, str(args.cgroup_root)) == ("node1", container["volumeMounts"][0]["mountPath"])
    assert (args.interval_seconds, args.namespaces) == (interval, namespaces)
    assert args.api_server == "https://10.96.0.1:443"
    assert container["command"] == ["python", "-m", "cosyvoice_operator.nodeagent"]


def test_with_network_policies_it_reaches_the_api_server_only(render: Render) -> None:
    policy = only(render(EVERYTHING), "NetworkPolicy", NAME)

    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy["spec"]
    assert policy["spec"]["egress"] == [{"ports": [{"protocol": "TCP", "port": port} for port in (443, 6443)]}]

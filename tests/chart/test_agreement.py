"""What the chart says agrees with the code: settings, names, ports, metrics, versions, generated files."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cosyvoice_operator import lease, names, settings
from cosyvoice_worker._version import __version__
from dev import chart, deploy, generate
from dev.cluster.modules import HELM
from dev.helm import CHART
from tests.chart.conftest import NAMESPACE, Render, only
from tests.chart.values import EVERYTHING

ROOT = CHART.parents[1]


def settings_of(deployment: dict[str, Any]) -> settings.Settings:
    """What the operator makes of the environment that the chart gives it."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    environment = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    ours = {name for name in environment if name.startswith(settings.ENVIRONMENT_PREFIX)}
    parser = argparse.ArgumentParser()
    settings.add_arguments(parser)
    assert all(f"[{name}" in parser.format_help().replace("\n", "") for name in ours), f"unknown settings in {ours}"
    environment |= {"POD_NAMESPACE": NAMESPACE, "POD_NAME": "operator-0"}
    return settings.load(parser.parse_args([]), environment, process="test")


def test_the_charts_defaults_are_the_operators_own(render: Render) -> None:
    own = settings.load(argparse.Namespace(), {"POD_NAMESPACE": NAMESPACE, "POD_NAME": "operator-0"}, process="test")

    assert settings_of(only(render(), "Deployment")) == dataclasses.replace(
        own, policy=dataclasses.replace(own.policy, worker_image=f"cosyvoice-worker:{__version__}")
    )


def test_every_value_reaches_the_operator(render: Render) -> None:
    defaults = {
        "device": "cpu",
        "stageMemory": "512Mi",
        "workerCpuRequest": "2",
        "workerMemoryRequest": "1Gi",
        "workerMemoryLimit": "3Gi",
    }
    values = EVERYTHING | {"modelDefaults": defaults, "resyncSeconds": 2.5, "workers": 3, "logLevel": "debug"}

    found = settings_of(only(render(values), "Deployment"))

    assert (found.namespaces, found.resync_seconds, found.workers, found.log_level) == (("speech", "radio"), 2.5, 3, 10)
    assert dataclasses.asdict(found.policy) == {
        "worker_image": "registry.example.com/team/other/worker:v7",
        "device": "cpu",
        "stage_memory": "512Mi",
        "worker_cpu_request": "2",
        "worker_memory_request": "1Gi",
        "worker_memory_limit": "3Gi",
        "allowed_host_paths": ("/srv/models", "/mnt/.a-b"),
    }


def test_the_lease_may_be_had_by_its_name(render: Render) -> None:
    rules = only(render(), "Role", "cosyvoice-operator-lease")["rules"]

    assert [rule.get("resourceNames") for rule in rules] == [None, [lease.NAME]]


def test_the_operator_may_do_the_same_in_a_namespace_as_in_all(render: Render) -> None:
    everywhere = only(render(), "ClusterRole", "cosyvoice-operator")["rules"]
    limited = [
        one
        for one in render({"watchNamespaces": ["speech", "radio"]})
        if one["metadata"]["name"] == "cosyvoice-operator"
    ]

    roles = [one for one in limited if one["kind"] == "Role"]
    assert [role["metadata"]["namespace"] for role in roles] == ["speech", "radio"]
    assert all(role["rules"] == everywhere for role in roles)
    assert {one["kind"] for one in limited} & {"ClusterRole", "ClusterRoleBinding"} == set()
    assert [one["metadata"]["namespace"] for one in limited if one["kind"] == "RoleBinding"] == ["speech", "radio"]


def test_no_rule_names_everything(render: Render) -> None:
    rules = [rule for one in render() if one["kind"] in {"Role", "ClusterRole"} for rule in one["rules"]]

    assert all("*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]] for rule in rules)
    assert all("secrets" not in rule["resources"] for rule in rules)


def test_development_installs_what_the_chart_does(render: Render) -> None:
    values = {
        "crds": {"enabled": False},
        "images": {
            "operator": {"repository": "localhost/o", "tag": "1"},
            "worker": {"repository": "localhost/w", "tag": "2"},
        },
        "modelDefaults": {"device": "cpu", "stageMemory": deploy.SMALL_STAGE_MEMORY},
        "resyncSeconds": 2,
    }
    objects = deploy.render(operator_image="localhost/o:1", worker_image="localhost/w:2", resync_seconds=2)

    assert [one["kind"] for one in objects[:2]] == ["Namespace", "CustomResourceDefinition"]
    assert objects[2:] == render(values, "--no-hooks")
    assert only(objects, "Deployment")["metadata"]["name"] == deploy.NAME


def test_the_charts_crd_is_the_api(render: Render) -> None:
    ours = yaml.safe_load((ROOT / "crds" / "cosyvoicemodels.yaml").read_text())
    theirs = only(render(), "CustomResourceDefinition")

    assert theirs["spec"] == ours["spec"]
    assert theirs["metadata"]["name"] == ours["metadata"]["name"]


@pytest.mark.parametrize("path", generate.generated(), ids=lambda path: path.name)
def test_generated_files_are_up_to_date(path: Path) -> None:
    """`make generate` brings them up to date."""
    assert path.read_text() == generate.generated()[path]


def test_the_table_of_values_has_each_of_them() -> None:
    text = "# -- One.\na: 1\nb:\n  # -- Two,\n  # in two lines.\n  c: [x]\n"

    assert chart.values_table(text).splitlines()[2:] == [
        "| `a` | `1` | One. |",
        '| `b.c` | `["x"]` | Two, in two lines. |',
    ]


def test_a_value_without_a_word_is_no_value() -> None:
    with pytest.raises(chart.ChartError, match=r"no `# --` comment above b\.c"):
        chart.values_table("# -- One.\na: 1\nb:\n  c: 2\n")


def test_the_schema_knows_the_values_that_there_are() -> None:
    """With what is optional inside them, and nothing that no template reads."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def compare(node: dict[str, Any], here: dict[str, Any], path: str) -> None:
        if "$ref" in node:
            _, section, name = node["$ref"].split("/")
            node = schema[section][name]
        if "properties" not in node or not here:
            return
        assert set(node["properties"]) - {"global"} == set(here), path
        for name, value in here.items():
            if isinstance(value, dict):
                compare(node["properties"][name], value, f"{path}.{name}")

    compare(schema, values, "")


def test_monitors_find_what_they_are_for(render: Render) -> None:
    objects = render(EVERYTHING)
    service = only(objects, "Service")
    (operator,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]

    selected = only(objects, "ServiceMonitor")["spec"]
    assert selected["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [one["port"] for one in selected["endpoints"]] == [port["name"] for port in service["spec"]["ports"]]
    assert {one["name"]: one["containerPort"] for one in operator["ports"]} == {"health": 8080, "metrics": 9090}

    workers = only(objects, "PodMonitor")["spec"]
    assert workers["selector"] == {
        "matchLabels": {names.LABEL_APP_COMPONENT: names.COMPONENT_WORKER},
        "matchExpressions": [{"key": names.LABEL_MODEL, "operator": "Exists"}],
    }
    assert [one["port"] for one in workers["podMetricsEndpoints"]] == [names.ADMIN_PORT_NAME]
    (relabelling,) = workers["podMetricsEndpoints"][0]["relabelings"]
    label = "__meta_kubernetes_pod_label_" + re.sub(r"[^a-z]", "_", names.LABEL_MODEL)
    assert relabelling == {"sourceLabels": [label], "targetLabel": "model"}


def test_the_network_policy_lets_the_operator_reach_its_workers(render: Render) -> None:
    egress = only(render(EVERYTHING), "NetworkPolicy", "cosyvoice-operator")["spec"]["egress"]

    assert {port["port"] for rule in egress for port in rule["ports"]} == {443, 6443, 53, names.ADMIN_PORT}


def test_helm_is_pinned_by_its_hash() -> None:
    required = re.findall(r"^\s+(helm\.sh/helm/v4) (v\S+)", (HELM.directory / "go.mod").read_text(), re.MULTILINE)

    assert required == [("helm.sh/helm/v4", HELM.flags[1].rpartition("=")[2])]
    assert f"helm.sh/helm/v4 {required[0][1]} h1:" in (HELM.directory / "go.sum").read_text()


@pytest.mark.parametrize("page", ["docs/install.md", "examples/narrator-full.yaml"])
def test_pages_name_the_images_of_this_version(page: str) -> None:
    named = re.findall(r"/cosyvoice-(?:operator|worker):(\S+)", (ROOT / page).read_text())

    assert set(named) == {__version__}

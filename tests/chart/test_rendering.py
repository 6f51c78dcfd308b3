"""What the chart renders to: as it was, as Kubernetes wants it, and as the values say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from cosyvoice_worker._version import __version__
from dev.helm import CHART, Helm
from tests.chart.conftest import NAMESPACE, RELEASE, Objects, Render, only
from tests.chart.values import CLUSTER_WIDE, EVERYTHING

SNAPSHOT = Path(__file__).parent / "snapshots" / "defaults.yaml"
VARIANTS = {"defaults": {}, "everything": EVERYTHING, "everything, cluster-wide": CLUSTER_WIDE}
# Kinds of the Prometheus operator, which Kubernetes has no schemas of.
FOREIGN = "monitoring.coreos.com/"


def without_contents(objects: Objects) -> Objects:
    """The objects without what other tests look at: the CRD's schema and the script of `helm test`."""
    for one in objects:
        if one["kind"] == "CustomResourceDefinition":
            one["spec"] = "…"
        if one["kind"] == "ConfigMap":
            one["data"] = dict.fromkeys(one["data"], "…")
    return objects


def test_the_defaults_render_to_what_they_did_before(render: Render) -> None:
    """A change of the rendering is meant: `UPDATE_SNAPSHOTS=1 pytest tests/chart` takes it over, for the review."""
    text = yaml.safe_dump_all(without_contents(render()), sort_keys=False).replace(__version__, "VERSION")
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text)

    assert text == SNAPSHOT.read_text()


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_helm_finds_nothing_to_say_against_the_chart(chart_helm: Helm, values: dict[str, Any]) -> None:
    said = chart_helm.run("lint", "--strict", str(CHART), "--namespace", NAMESPACE, values=values)

    assert "0 chart(s) failed" in said


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_helm_3_finds_nothing_either_and_renders_the_same(helm3: Helm, render: Render, values: dict[str, Any]) -> None:
    # Each Helm takes another Kubernetes for granted where it is told none.
    flags = ("--kube-version", "1.37.0")

    said = helm3.run("lint", "--strict", str(CHART), "--namespace", NAMESPACE, *flags, values=values)

    assert "0 chart(s) failed" in said
    assert by_name(helm3.template(RELEASE, NAMESPACE, values, *flags)) == by_name(render(values, *flags))


def by_name(objects: Objects) -> dict[tuple[str, str], dict[str, Any]]:
    """The objects by kind and name: the two Helms sort equal kinds differently."""
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}


@pytest.mark.parametrize("kubernetes", [f"1.{minor}" for minor in range(31, 38)])
@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_every_object_is_valid_to_the_letter_on_every_kubernetes(
    render: Render, values: dict[str, Any], kubernetes: str
) -> None:
    objects = render(values, "--kube-version", kubernetes)
    ours = [one for one in objects if not one["apiVersion"].startswith(FOREIGN)]

    assert len(ours) >= 10
    for one in ours:
        kubernetes_validate.validate(one, kubernetes, strict=True)


def test_an_older_kubernetes_is_refused(chart_helm: Helm) -> None:
    with pytest.raises(Exception, match=r"chart requires kubeVersion: >=1\.31\.0-0 which is incompatible"):
        chart_helm.template("cosyvoice", NAMESPACE, None, "--kube-version", "1.30")


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("cosyvoice", "cosyvoice-operator"),
        ("speech", "speech-cosyvoice-operator"),
        ("my-cosyvoice", "my-cosyvoice-operator"),
        ("cosyvoice-operator", "cosyvoice-operator"),
        ("x" * 53, "x" * 45 + "-operator"),
    ],
)
def test_objects_are_named_after_the_release(render: Render, release: str, name: str) -> None:
    assert only(render(release=release), "Deployment")["metadata"]["name"] == name


def test_a_name_of_the_users_own_is_used_as_it_is(render: Render) -> None:
    assert only(render({"fullnameOverride": "voice"}), "Deployment")["metadata"]["name"] == "voice"


def test_every_object_of_a_namespace_says_which(render: Render) -> None:
    """So that `helm template | kubectl apply` puts them where `helm install` does."""
    cluster_wide = {"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}

    for one in render(CLUSTER_WIDE):
        assert ("namespace" in one["metadata"]) == (one["kind"] not in cluster_wide), one["kind"]


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        ({}, f"cosyvoice-operator:{__version__}"),
        ({"tag": "v2"}, "cosyvoice-operator:v2"),
        ({"repository": "registry.example.com:5000/mine"}, f"registry.example.com:5000/mine:{__version__}"),
        ({"digest": "sha256:" + "0" * 64}, "cosyvoice-operator@sha256:" + "0" * 64),
        ({"tag": "v2", "digest": "sha256:" + "0" * 64}, "cosyvoice-operator@sha256:" + "0" * 64),
    ],
)
def test_the_operator_runs_the_image_that_the_values_name(
    render: Render, image: dict[str, str], reference: str
) -> None:
    (container,) = only(render({"images": {"operator": image}}), "Deployment")["spec"]["template"]["spec"]["containers"]

    assert container["image"] == reference


def test_the_registry_stands_before_both_images(render: Render) -> None:
    objects = render({"images": {"registry": "registry.example.com/you"}})

    (container,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"registry.example.com/you/cosyvoice-operator:{__version__}"
    worker = {one["name"]: one.get("value") for one in container["env"]}["COSYVOICE_WORKER_IMAGE"]
    assert worker == f"registry.example.com/you/cosyvoice-worker:{__version__}"
    assert only(objects, "Pod")["spec"]["containers"][0]["image"] == worker


@pytest.mark.parametrize("replicas", [0, 1, 2])
def test_two_replicas_get_a_disruption_budget_and_keep_apart(render: Render, replicas: int) -> None:
    objects = render({"replicas": replicas})

    budgets = [one for one in objects if one["kind"] == "PodDisruptionBudget"]
    affinity = only(objects, "Deployment")["spec"]["template"]["spec"].get("affinity", {})
    assert bool(budgets) == bool(affinity) == (replicas == 2)
    assert only(objects, "Deployment")["spec"]["replicas"] == replicas


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("keep", [True, False])
def test_the_crd_is_installed_and_kept_as_the_values_say(render: Render, enabled: bool, keep: bool) -> None:
    crds = [
        one for one in render({"crds": {"enabled": enabled, "keep": keep}}) if one["kind"] == "CustomResourceDefinition"
    ]

    assert bool(crds) == enabled
    for crd in crds:
        assert ("helm.sh/resource-policy" in crd["metadata"].get("annotations", {})) == keep


@pytest.mark.parametrize(
    ("switch", "kind"),
    [
        ({"networkPolicy": {"enabled": True}}, "NetworkPolicy"),
        ({"metrics": {"serviceMonitor": {"enabled": True}}}, "ServiceMonitor"),
        ({"metrics": {"podMonitor": {"enabled": True}}}, "PodMonitor"),
        ({"metrics": {"prometheusRule": {"enabled": True}}}, "PrometheusRule"),
        ({"metrics": {"dashboard": {"enabled": True}}}, "ConfigMap"),
    ],
)
def test_a_switch_adds_one_object_and_changes_no_other(render: Render, switch: dict[str, Any], kind: str) -> None:
    before, after = render(), render(switch)

    assert [one["kind"] for one in after if one not in before] == [kind]
    assert [one for one in before if one not in after] == []


@pytest.mark.parametrize(("secret", "mounted"), [("", []), ("narrator-keys", [{"secretName": "narrator-keys"}])])
def test_the_test_gets_the_api_keys_that_it_is_given(
    render: Render, secret: str, mounted: list[dict[str, str]]
) -> None:
    pod = only(render({"test": {"apiKeysSecret": secret}}), "Pod")["spec"]

    assert [volume["secret"] for volume in pod["volumes"] if "secret" in volume] == mounted
    (container,) = pod["containers"]
    assert [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "api-keys"] == [
        "/api-keys" for _ in mounted
    ]
    assert ("--api-keys=/api-keys" in container["args"]) == bool(mounted)


def test_alerts_link_to_their_section(render: Render) -> None:
    groups = only(render(EVERYTHING), "PrometheusRule")["spec"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]

    assert {rule["annotations"]["runbook_url"] for rule in rules} == {
        f"https://docs.example.com/alerts#{rule['alert'].lower()}" for rule in rules
    }


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({}, "looks after every namespace"),
        ({}, "kubectl -n default apply -f examples/narrator.yaml"),
        ({}, f"helm -n {NAMESPACE} test cosyvoice"),
        ({}, "`helm uninstall` leaves the CustomResourceDefinition and every model"),
        ({}, "NVIDIA GPUs"),
        ({"watchNamespaces": ["speech", "radio"]}, "looks after the namespaces speech, radio"),
        ({"watchNamespaces": ["speech", "radio"]}, "kubectl -n speech apply -f examples/narrator.yaml"),
        ({"crds": {"keep": False}}, "removes the CustomResourceDefinition and with it EVERY MODEL"),
        ({"crds": {"enabled": False}}, "does not belong to this release"),
    ],
)
def test_the_notes_say_what_comes_next(chart_helm: Helm, values: dict[str, Any], line: str) -> None:
    notes = chart_helm.run(
        "install", "cosyvoice", str(CHART), "--namespace", NAMESPACE, "--dry-run=client", "--hide-secret", values=values
    )

    assert line in notes.partition("NOTES:")[2]

"""The life of a release on a real API server: install, upgrade, uninstall, install again, remove all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dev import helm
from dev.helm import CHART, Helm, HelmError
from tests.apiserver.control_plane import ControlPlane, running
from tests.apiserver.operator_process import OperatorProcess, eventually
from tests.chart.conftest import NAMESPACE
from tests.chart.values import EVERYTHING

CRD = "customresourcedefinition/cosyvoicemodels.cosyvoice.dev"
EXAMPLES = CHART.parents[1] / "examples"
# The API server of the tests knows the Prometheus operator's kinds as little as any that was not told of them.
NO_MONITORS = {
    "serviceMonitor": {"enabled": False},
    "podMonitor": {"enabled": False},
    "prometheusRule": {"enabled": False},
}


@dataclass(frozen=True)
class Place:
    """An API server, and Helm for it."""

    plane: ControlPlane
    helm: Helm

    def install(self, *flags: str, release: str = "cosyvoice", namespace: str = NAMESPACE, **values: Any) -> str:
        return self.helm.run("install", release, str(CHART), "-n", namespace, *flags, values=values)

    def upgrade(self, *flags: str, **values: Any) -> str:
        return self.helm.run("upgrade", "cosyvoice", str(CHART), "-n", NAMESPACE, *flags, values=values)

    def uninstall(self, release: str = "cosyvoice", namespace: str = NAMESPACE) -> str:
        return self.helm.run("uninstall", release, "-n", namespace)

    def get(self, *arguments: str) -> dict[str, Any] | None:
        """The object, None where there is none."""
        done = self.plane.kubectl("get", *arguments, "-o", "json", "--ignore-not-found")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] | None = json.loads(done.stdout) if done.stdout else None
        return found

    def apply_model(self, namespace: str) -> None:
        """The example, once the API server serves its kind."""
        apply = ("-n", namespace, "apply", "-f", str(EXAMPLES / "narrator.yaml"))
        eventually("the kind to be served", lambda: self.plane.kubectl(*apply).returncode == 0)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server of the module's own: releases share its one CustomResourceDefinition."""
    with running(tmp_path_factory.mktemp("control-plane")) as plane:
        for namespace in (NAMESPACE, "other-system", "speech", "radio", "cosyvoice-nodes"):
            assert plane.kubectl("create", "namespace", namespace).returncode == 0
        yield plane


@pytest.fixture
def place(plane: ControlPlane) -> Iterator[Place]:
    """The API server without a release, a model or the kind of models; left so, too."""
    place = Place(plane, helm.find(plane.kubeconfig))
    yield place
    for release in json.loads(place.helm.run("list", "--all-namespaces", "-o", "json")):
        place.uninstall(release["name"], release["namespace"])
    plane.kubectl("delete", CRD, "--ignore-not-found", "--timeout=60s")


def test_the_api_server_takes_all_that_can_be_switched_on(place: Place) -> None:
    place.install(**EVERYTHING | {"metrics": NO_MONITORS})

    kinds = ("networkpolicy", "poddisruptionbudget", "serviceaccount", "service/cosyvoice-operator-metrics")
    names = [kind if "/" in kind else f"{kind}/cosyvoice-operator" for kind in kinds]
    assert [place.get("-n", NAMESPACE, name) is not None for name in names] == [True] * len(names)
    assert place.get("clusterrole/cosyvoice-operator") is None


def test_monitors_without_their_kinds_are_refused_by_name(place: Place) -> None:
    with pytest.raises(HelmError, match='no matches for kind "PodMonitor"'):
        place.install(metrics={"podMonitor": {"enabled": True}})


def test_an_operator_limited_to_a_namespace_has_all_rights_that_it_needs(place: Place, tmp_path: Path) -> None:
    place.install(watchNamespaces=["speech"])
    place.apply_model("speech")

    operator = OperatorProcess(
        place.plane, tmp_path / "operator.log", "speech", "one", f"--lease-namespace={NAMESPACE}", "--resync-seconds=2"
    )
    try:
        eventually("the Deployment", lambda: place.get("-n", "speech", "deployment/narrator"))
        eventually(
            "a reason", lambda: (place.get("-n", "speech", "cvm/narrator") or {}).get("status", {}).get("reason")
        )
    finally:
        operator.process.terminate()
        operator.process.wait(timeout=30)

    assert "orbidden" not in (tmp_path / "operator.log").read_text()


def test_models_outlive_their_release_and_the_next_one_adopts_them(place: Place) -> None:
    place.install()
    place.apply_model("speech")
    before = place.get("-n", "speech", "cvm/narrator")
    assert before is not None

    said = place.uninstall()

    assert "[CustomResourceDefinition] cosyvoicemodels.cosyvoice.dev" in said
    assert place.get("-n", NAMESPACE, "deployment/cosyvoice-operator") is None
    assert place.get("-n", "speech", "cvm/narrator") == before
    place.install()
    assert place.get("-n", "speech", "cvm/narrator") == before
    assert place.get("-n", NAMESPACE, "deployment/cosyvoice-operator") is not None


def test_another_release_adopts_them_when_it_is_told_to(place: Place) -> None:
    place.install()
    place.apply_model("speech")
    before = place.get("-n", "speech", "cvm/narrator")
    place.uninstall()

    with pytest.raises(HelmError, match="cannot be imported into the current release"):
        place.install(release="tts", namespace="other-system")
    place.install("--take-ownership", release="tts", namespace="other-system")

    assert place.get("-n", "speech", "cvm/narrator") == before
    owner = place.get(CRD)
    assert owner is not None
    assert owner["metadata"]["annotations"]["meta.helm.sh/release-name"] == "tts"


def test_without_keep_everything_goes_at_once(place: Place) -> None:
    place.install()
    place.apply_model("speech")

    place.upgrade("--reset-then-reuse-values", crds={"keep": False})
    place.uninstall()

    assert eventually("the kind to go", lambda: place.get(CRD) is None)
    assert place.plane.kubectl("-n", "speech", "get", "cvm").returncode != 0


def test_an_upgrade_changes_the_operator_and_no_model(place: Place) -> None:
    place.install()
    place.apply_model("speech")
    model = place.get("-n", "speech", "cvm/narrator")

    place.upgrade("--reset-then-reuse-values", replicas=2, images={"operator": {"tag": "v2"}})

    deployment = place.get("-n", NAMESPACE, "deployment/cosyvoice-operator")
    assert deployment is not None
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "cosyvoice-operator:v2"
    assert place.get("-n", "speech", "cvm/narrator") == model

    place.helm.run("rollback", "cosyvoice", "1", "-n", NAMESPACE)
    deployment = place.get("-n", NAMESPACE, "deployment/cosyvoice-operator")
    assert deployment is not None
    assert deployment["spec"]["replicas"] == 1
    assert place.get("-n", "speech", "cvm/narrator") == model


def test_two_releases_share_a_cluster_but_no_namespace(place: Place) -> None:
    place.install(watchNamespaces=["speech"])

    with pytest.raises(HelmError, match='Role "cosyvoice-operator" in namespace "speech" exists'):
        place.install(namespace="other-system", watchNamespaces=["speech"], crds={"enabled": False})
    place.install(namespace="other-system", watchNamespaces=["radio"], crds={"enabled": False})

    assert place.get("-n", "radio", "role/cosyvoice-operator") is not None


# A kind of the Gateway API, which this API server does not serve: see test_ways_in.py.
SERVED = sorted(path for path in EXAMPLES.glob("*.yaml") if path.name != "httproute.yaml")


@pytest.mark.parametrize("example", SERVED, ids=lambda path: path.name)
def test_every_example_is_taken_to_the_letter(place: Place, example: Path) -> None:
    place.install()
    apply = ("-n", "speech", "apply", "--dry-run=server", "--validate=strict", "-f", str(example))
    eventually("the kind to be served", lambda: place.plane.kubectl("get", "cvm").returncode == 0)

    done = place.plane.kubectl(*apply)

    assert done.returncode == 0, done.stderr

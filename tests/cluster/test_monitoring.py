"""A real Prometheus beside the cluster: it finds what the chart says, and there is data for all that the chart asks.

While it looks on, a model speaks and is given a bad version, which is rolled back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dev import deploy, helm, metrics_page
from dev.dashboard.panels import ROWS, Panel
from dev.kubectl import Kubectl
from dev.playground import Playground
from dev.waiting import wait_for
from tests.cluster import discovery, prometheus
from tests.cluster.prometheus import Prometheus
from tests.cluster.traffic import calling

MODEL = "narrator"
PANELS = [panel for panels in ROWS.values() for panel in panels]
# Of its own accord the engine is recycled only after thousands of requests, and the kernel may be one with cgroup v1.
WITHOUT_SAMPLES = {"cosyvoice_engine_recycles_total", "cosyvoice_engine_restarts_total"}
# What Prometheus adds. The operator's own label `model` is none of these.
OPERATOR_LABELS = {"__name__", "job", "instance", "namespace", "pod", "le"}
TARGET_LABELS = OPERATOR_LABELS | {"model"}


@dataclass(frozen=True)
class Monitored:
    """Prometheus, and the namespace of the model that it looks at."""

    prometheus: Prometheus
    namespace: str

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The samples of a query of the dashboard, with this namespace and model chosen."""
        chosen = {"$namespace": self.namespace, "$model": MODEL, "$__rate_interval": "1m"}
        for variable, value in chosen.items():
            expression = expression.replace(variable, value)
        return self.prometheus.query(expression)


@pytest.fixture(scope="module")
def monitors(shared_playground: Playground) -> dict[str, dict[str, Any]]:
    """What the chart renders for the Prometheus operator, by kind."""
    enabled = {"enabled": True}
    values = {
        "watchNamespaces": [shared_playground.namespace],
        "metrics": {"serviceMonitor": enabled, "podMonitor": enabled, "prometheusRule": enabled},
    }
    return {one["kind"]: one for one in helm.find().template(deploy.RELEASE, deploy.NAMESPACE, values)}


@pytest.fixture(scope="module")
def monitored(
    shared_playground: Playground,
    monitors: dict[str, dict[str, Any]],
    tiny_path: str,
    bad_path: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Monitored]:
    """Prometheus, after it has seen a model come up, speak, and fall back from a bad version."""
    folder = tmp_path_factory.mktemp("prometheus")
    kubectl = shared_playground.kubectl
    shared_playground.apply_model(MODEL, path=tiny_path, version="good")
    shared_playground.wait_ready(MODEL)
    jobs = [
        discovery.worker_job(monitors["PodMonitor"], kubectl),
        discovery.operator_job(monitors["ServiceMonitor"], kubectl),
        discovery.kubelet_job(kubectl, shared_playground.namespace, folder),
    ]
    with prometheus.running(folder, jobs, {"groups": monitors["PrometheusRule"]["spec"]["groups"]}) as found:
        with calling(shared_playground, MODEL, folder) as traffic:
            shared_playground.apply_model(MODEL, path=bad_path("lfs-pointer"), version="bad")
            shared_playground.wait_condition(MODEL, "RolledBack")
            wait_for("replies", lambda: len(traffic.replies()) >= 4)
        yield Monitored(found, shared_playground.namespace)


def test_everything_is_found_and_scraped(monitored: Monitored) -> None:
    def scraped() -> bool:
        targets = monitored.prometheus.get("targets", state="active")["activeTargets"]
        return {"operator", "workers", "nodes", "kubelets"} == {
            one["labels"]["job"] for one in targets if one["health"] == "up"
        }

    wait_for("all jobs", scraped, timeout=20)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_every_query_of_the_dashboard_has_data(monitored: Monitored, panel: Panel) -> None:
    for expression, _ in panel.queries:
        if panel.cgroup_2:
            monitored.query(expression)  # raises where it cannot be evaluated
        else:
            wait_for(f"data for {expression}", lambda expression=expression: monitored.query(expression), timeout=20)


def test_every_rule_is_evaluated_over_series_that_there_are(monitored: Monitored) -> None:
    def rules() -> list[dict[str, Any]]:
        groups = monitored.prometheus.get("rules", type="alert")["groups"]
        found = [rule for group in groups for rule in group["rules"]]
        return found if all(rule["health"] != "unknown" for rule in found) else []

    for rule in wait_for("all rules", rules, timeout=20):
        assert (rule["health"], rule.get("lastError")) == ("ok", None), rule["name"]
        for metric in set(re.findall(r"\b(?:cosyvoice|node)_[a-z_]+(?=[\[{ )]|$)", rule["query"])):
            assert monitored.prometheus.query(f"count({metric})"), f"{rule['name']}: no series of {metric}"


def test_the_rollback_is_alerted_with_the_name_of_the_model(monitored: Monitored) -> None:
    def alert() -> dict[str, Any] | None:
        for one in monitored.prometheus.get("alerts")["alerts"]:
            labels = one["labels"]
            if labels["alertname"] == "CosyVoiceRolledBack" and labels["model_namespace"] == monitored.namespace:
                found: dict[str, Any] = one
                return found
        return None

    found = wait_for("the alert", alert, timeout=20)
    assert found["state"] == "firing"
    name = f"{monitored.namespace}/{MODEL}"
    reason = found["labels"]["reason"]
    assert found["annotations"]["summary"] == (
        f"A version of the CosyVoice model {name} was taken out of service in the last hour: {reason}."
    )


@pytest.mark.parametrize(
    ("job", "families"),
    [("operator", metrics_page.operator_families()), ("workers", metrics_page.worker_families())],
    ids=["operator", "workers"],
)
def test_the_pages_tables_have_what_the_programs_tell(
    monitored: Monitored, job: str, families: list[metrics_page.Family]
) -> None:
    """Nothing is told that is not in docs/metrics-and-alerts.md, and with no other labels."""
    selector = f'{{job="{job}",__name__=~"cosyvoice_.+"}}'
    series = monitored.prometheus.get("series", **{"match[]": selector})
    told: dict[str, set[str]] = {}
    for labels in series:
        name = re.sub(r"_(bucket|sum|count)$", "", labels["__name__"])
        told.setdefault(name, set()).update(labels.keys() - (TARGET_LABELS if job == "workers" else OPERATOR_LABELS))

    documented = {family.name: set(family.labels) for family in families}
    assert told == {name: labels for name, labels in documented.items() if name in told}
    silent = {name for name in documented.keys() - told.keys() if not name.startswith("cosyvoice_memory_")}
    assert silent <= WITHOUT_SAMPLES


def test_every_line_of_the_logs_is_one_object_with_the_documented_fields(
    monitored: Monitored, kubectl: Kubectl
) -> None:
    operator = kubectl.run("-n", deploy.NAMESPACE, "logs", f"deployment/{deploy.NAME}", "--tail=500")
    workers = kubectl.run(
        "-n", monitored.namespace, "logs", "-l", f"cosyvoice.dev/model={MODEL}", "--all-containers", "--tail=500"
    )

    for text, always in ((operator, set[str]()), (workers, {"program", "pod"})):
        lines = [json.loads(line) for line in text.splitlines()]
        assert len(lines) > 3
        assert all({"time", "level", "logger", "message"} | always <= line.keys() for line in lines)
    spoken = [line for line in map(json.loads, workers.splitlines()) if line["message"] == "speech"]
    assert {"ok"} == {line["outcome"] for line in spoken}
    assert all({"model", "revision", "version", "request_id", "seconds"} <= line.keys() for line in spoken)

"""The dashboard: Grafana finds it, its queries are PromQL, and they ask for metrics that there are."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from dev import metrics_page
from dev.dashboard.panels import ROWS
from dev.helm import CHART
from tests.chart.conftest import Objects, Render
from tests.chart.values import EVERYTHING

QUERIES = [query for panels in ROWS.values() for panel in panels for query, _ in panel.queries]
RULES = [
    rule["expr"]
    for group in yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
# Of the node exporter and of cAdvisor.
FOREIGN = {"node_disk_io_time_seconds_total", "container_memory_max_usage_bytes", "container_spec_memory_limit_bytes"}


def config_map(objects: Objects) -> dict[str, Any]:
    (found,) = [one for one in objects if one["kind"] == "ConfigMap" and "cosyvoice.json" in one["data"]]
    return found


def test_the_sidecar_finds_it_by_its_usual_label(render: Render) -> None:
    found = config_map(render({"metrics": {"dashboard": {"enabled": True}}}))

    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert "annotations" not in found["metadata"]


def test_the_sidecar_finds_it_by_labels_of_the_users_own(render: Render) -> None:
    metadata = config_map(render(EVERYTHING))["metadata"]

    assert metadata["labels"]["dashboards"] == "yes"
    assert "grafana_dashboard" not in metadata["labels"]
    assert metadata["annotations"] == {"grafana_folder": "Speech"}


def test_what_is_installed_is_the_generated_dashboard_to_the_letter(render: Render) -> None:
    text = config_map(render(EVERYTHING))["data"]["cosyvoice.json"]

    assert json.loads(text) == json.loads((CHART / "files" / "dashboard.json").read_text())


def test_panels_do_not_overlap_and_have_one_number_each() -> None:
    panels = json.loads((CHART / "files" / "dashboard.json").read_text())["panels"]
    places = [panel["gridPos"] for panel in panels]
    cells = [(p["x"] + x, p["y"] + y) for p in places for x in range(p["w"]) for y in range(p["h"])]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.parametrize("expression", [*QUERIES, *RULES])
def test_queries_and_rules_ask_for_metrics_that_there_are(expression: str) -> None:
    there = set(FOREIGN)
    for family in [*metrics_page.operator_families(), *metrics_page.worker_families()]:
        parts = (f"{family.name}_bucket", f"{family.name}_sum", f"{family.name}_count")
        there.update(parts if family.kind == "histogram" else (family.name,))

    asked = set(re.findall(r"\b(?:cosyvoice|node|container)_[a-z_]+\b(?=[\[{ )]|$)", expression))
    assert asked
    assert asked <= there


def test_the_documented_scrape_is_that_of_the_pod_monitor(render: Render) -> None:
    """Where the Prometheus operator is not there, the page says how to find the same pods and name them alike."""
    text = metrics_page.PAGE.read_text().partition("```yaml\n")[2].partition("```")[0]
    (job,) = yaml.safe_load(text)["scrape_configs"]
    (monitor,) = [one["spec"] for one in render(EVERYTHING) if one["kind"] == "PodMonitor"]
    (endpoint,) = monitor["podMetricsEndpoints"]

    kept = {rule["source_labels"][0]: rule["regex"] for rule in job["relabel_configs"] if rule.get("action") == "keep"}
    named = {rule["target_label"]: rule["source_labels"] for rule in job["relabel_configs"] if "target_label" in rule}
    prefix = "__meta_kubernetes_pod_"
    assert kept == {
        **{f"{prefix}label_{_plain(key)}": value for key, value in monitor["selector"]["matchLabels"].items()},
        **{f"{prefix}labelpresent_{_plain(one['key'])}": "true" for one in monitor["selector"]["matchExpressions"]},
        f"{prefix}container_port_name": endpoint["port"],
    }
    assert [named[one["targetLabel"]] for one in endpoint["relabelings"]] == [
        one["sourceLabels"] for one in endpoint["relabelings"]
    ]
    assert named.keys() == {"namespace", "pod", "model"}


def _plain(label: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", label)

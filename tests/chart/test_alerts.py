"""Each alert fires when it should and only then: tried by promtool, Prometheus' own judge of rules."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cosyvoice_operator import assessment, progress
from cosyvoice_worker.metrics import FAULTS
from dev.helm import CHART
from tests.chart.alert_cases import CASES, Case

RULES = CHART / "files" / "alerts.yaml"
PAGE = CHART.parents[1] / "docs" / "metrics-and-alerts.md"
ALERTS: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
]
NAMES = [alert["alert"] for alert in ALERTS]


def promtool(*arguments: str) -> str:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_can_read_the_rules() -> None:
    assert f"SUCCESS: {len(ALERTS)} rules found" in promtool("check", "rules", str(RULES))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.name}")
def test_an_alert_fires_when_it_should_and_only_then(tmp_path: Path, case: Case) -> None:
    firing = f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}'
    (severity,) = [alert["labels"]["severity"] for alert in ALERTS if alert["alert"] == case.alert]
    names = {"__name__": "ALERTS", "alertname": case.alert, "alertstate": "firing", "severity": severity}
    expected = [] if case.fires is None else [{"labels": _selector(names | case.fires), "value": 1}]
    test = {
        "interval": "15s",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [{"expr": firing, "eval_time": case.at, "exp_samples": expected}],
    }
    file = tmp_path / "case.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "15s", "tests": [test]}))

    promtool("test", "rules", str(file))


@pytest.mark.parametrize("name", NAMES)
def test_every_alert_is_seen_firing_and_silent(name: str) -> None:
    assert {case.fires is not None for case in CASES if case.alert == name} == {True, False}


@pytest.mark.parametrize("alert", ALERTS, ids=NAMES)
def test_what_an_alert_says_of_labels_it_has(alert: dict[str, Any]) -> None:
    """A label that is not there is rendered as nothing, and nobody is told."""
    said = set(re.findall(r"\$labels\.(\w+)", " ".join(alert["annotations"].values())))
    (fires, *_) = [case.fires for case in CASES if case.alert == alert["alert"] and case.fires is not None]

    assert said <= fires.keys()


def test_the_alerts_know_which_reasons_are_no_trouble() -> None:
    expressions = {alert["alert"]: alert["expr"] for alert in ALERTS}
    on_its_way = {progress.CREATING, progress.SCHEDULING, progress.STAGING, progress.LOADING, progress.ROLLING_OUT}
    at_rest = {assessment.READY, assessment.PINNED, assessment.SCALED_TO_ZERO, assessment.PAUSED}
    at_rest.add(assessment.WAITING_FOR_DELETION)

    assert _alternatives(expressions["CosyVoiceRolloutSlow"], "reason") == on_its_way
    assert _alternatives(expressions["CosyVoiceModelInTrouble"], "reason") == on_its_way | at_rest
    assert _alternatives(expressions["CosyVoiceErrorRatio"], "outcome") == set(FAULTS)


@pytest.mark.parametrize("name", NAMES)
def test_every_alert_has_a_section_that_says_what_to_do(name: str) -> None:
    assert f"### {name}\n" in PAGE.read_text()


def _alternatives(expression: str, label: str) -> set[str]:
    found = re.search(rf'{label}[!=]~"([^"]*)"', expression)
    assert found
    return set(found[1].split("|"))


def _selector(labels: dict[str, str]) -> str:
    name = labels["__name__"]
    inside = ",".join(f'{label}="{value}"' for label, value in labels.items() if label != "__name__")
    return f"{name}{{{inside}}}"

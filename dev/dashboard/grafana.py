"""Panels as Grafana's JSON (schema version 39, which Grafana 10 and newer read)."""

from __future__ import annotations

import json
from typing import Any

from dev.dashboard.panels import ROWS, Panel

TITLE = "CosyVoice"
UID = "cosyvoice"
SCHEMA = 39
COLUMNS = 24
PER_LINE = 3
HEIGHT = 7
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def document() -> str:
    """The dashboard."""
    dashboard = {
        "title": TITLE,
        "uid": UID,
        "schemaVersion": SCHEMA,
        "editable": True,
        "tags": ["cosyvoice"],
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": _variables()},
        "panels": _panels(),
    }
    return json.dumps(dashboard, indent=1) + "\n"


def _variables() -> list[dict[str, Any]]:
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        _choice("namespace", "label_values(cosyvoice_ready, namespace)"),
        _choice("model", 'label_values(cosyvoice_ready{namespace=~"$namespace"}, model)'),
    ]


def _choice(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "query": query,
        "refresh": 2,
        "sort": 1,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panels() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    y = 0
    for row, panels in ROWS.items():
        made.append(
            {"type": "row", "title": row, "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}, "collapsed": False}
        )
        y += 1
        for start in range(0, len(panels), PER_LINE):
            for column, panel in enumerate(panels[start : start + PER_LINE]):
                width = COLUMNS // PER_LINE
                made.append(_panel(panel) | {"gridPos": {"x": column * width, "y": y, "w": width, "h": HEIGHT}})
            y += HEIGHT
    return [{"id": number, **panel} for number, panel in enumerate(made, 1)]


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(panel.queries)
        ],
    }

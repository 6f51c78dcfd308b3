"""What is generated of the chart: its copy of the CRD, its versions, and the values table of its README."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dev.helm import CHART

CRD_COPY = CHART / "files" / "cosyvoicemodels.yaml"
CHART_FILE = CHART / "Chart.yaml"
VALUES = CHART / "values.yaml"
README = CHART / "README.md"
BEGIN, END = "<!-- values: generated from values.yaml -->", "<!-- end of the generated values -->"
_KEY = re.compile(r"^( *)([A-Za-z]+):(.*)$")


class ChartError(Exception):
    """A file of the chart is not as the generator needs it; the message says which and how."""


def generated(crd: str, version: str) -> dict[Path, str]:
    """Every generated file and what belongs into it, of the text of the CRD and the package's version."""
    return {
        CRD_COPY: f"# Generated from crds/{CRD_COPY.name} by `make generate`.\n{crd}",
        CHART_FILE: _with_version(CHART_FILE.read_text(encoding="utf-8"), version),
        README: _with_table(README.read_text(encoding="utf-8"), values_table(VALUES.read_text(encoding="utf-8"))),
    }


def values_table(text: str) -> str:
    """The table of all values that have a `# --` comment. Raises ChartError for a value without one."""
    values = yaml.safe_load(text)
    rows = [
        f"| `{path}` | `{json.dumps(_at(values, path))}` | {meaning.replace('|', chr(92) + '|')} |"
        for path, meaning in _described(text)
    ]
    if missing := _leaves(values) - {path for path, _ in _described(text)}:
        raise ChartError(f"{VALUES}: no `# --` comment above {', '.join(sorted(missing))}")
    return "\n".join(["| value | default | meaning |", "|---|---|---|", *rows, ""])


def _described(text: str) -> Iterator[tuple[str, str]]:
    """(path, comment) of every key below a `# --` comment. A comment may go on in the next lines."""
    path: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("# -- "):
            comment = [words.removeprefix("# -- ")]
        elif words.startswith("# ") and comment:
            comment.append(words.removeprefix("# "))
        elif found := _KEY.match(line):
            path = [*path[: len(found[1]) // 2], found[2]]
            if comment:
                yield ".".join(path), " ".join(comment)
            comment = []


def _leaves(values: dict[str, Any]) -> set[str]:
    """The paths that need a description; a map of the user's own keys (`resources`) counts as one value."""
    found = set()
    for name, value in values.items():
        nested = isinstance(value, dict) and value and name != "resources"
        found |= {f"{name}.{rest}" for rest in _leaves(value)} if nested else {name}
    return found


def _at(values: Any, path: str) -> Any:
    for name in path.split("."):
        values = values[name]
    return values


def _with_version(text: str, version: str) -> str:
    return re.sub(r"^(version|appVersion): .*$", rf"\1: {version}", text, flags=re.MULTILINE)


def _with_table(text: str, table: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ChartError(f"{README}: expected the lines {BEGIN!r} and {END!r} around the table")
    return f"{before}{BEGIN}\n{table}{END}{after}"

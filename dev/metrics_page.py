"""The tables of metrics in docs/metrics-and-alerts.md, from the metrics themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.metrics import MetricWrapperBase

from cosyvoice_operator import metrics as operator_metrics
from cosyvoice_worker.memory_metrics import ContainerMemory
from cosyvoice_worker.metrics import Metrics

PAGE = Path(__file__).parents[1] / "docs" / "metrics-and-alerts.md"
BEGIN, END = "<!-- {}: generated from the code -->\n", "<!-- end of what is generated -->\n"


@dataclass(frozen=True, kw_only=True)
class Family:
    """A metric. The name of a counter ends with `_total`; to a histogram's belong `_bucket`, `_sum` and `_count`."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str


def generated() -> dict[Path, str]:
    """The page, and what belongs into it."""
    text = PAGE.read_text(encoding="utf-8")
    for program, families in (("operator", operator_families()), ("worker", worker_families())):
        head, begin, rest = text.partition(BEGIN.format(program))
        _, end, tail = rest.partition(END)
        text = "".join((head, begin, table(families), end, tail))
    return {PAGE: text}


def table(families: Iterable[Family]) -> str:
    """One line a metric, under the name that it is asked for by."""
    lines = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for family in sorted(families, key=lambda family: family.name):
        labels = ", ".join(f"`{label}`" for label in family.labels)
        lines.append(f"| `{family.name}` | {family.kind} | {labels} | {family.meaning} |")
    return "\n".join(lines) + "\n"


def operator_families() -> list[Family]:
    """The operator's own, without those of Python and the process."""
    return _families(vars(operator_metrics).values())


def worker_families() -> list[Family]:
    """The worker's own, without those of the process."""
    memory = [_family(metric, metric._labelnames) for metric in ContainerMemory().describe()]
    return [*_families(vars(Metrics(CollectorRegistry())).values()), *memory]


def _families(things: Iterable[object]) -> list[Family]:
    metrics = [thing for thing in things if isinstance(thing, MetricWrapperBase)]
    return [_family(described, metric._labelnames) for metric in metrics for described in metric.describe()]


def _family(metric: Metric, labels: Iterable[str]) -> Family:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    return Family(name=name, kind=metric.type, labels=tuple(labels), meaning=metric.documentation)

"""The tables of metrics in docs/metrics-and-alerts.md, from the metrics themselves."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.metrics import MetricWrapperBase

from cosyvoice_operator import metrics as operator_metrics
from cosyvoice_worker.memory_metrics import ContainerMemory
from cosyvoice_worker.metrics import Metrics

PAGE = Path(__file__).parents[1] / "docs" / "metrics-and-alerts.md"
BEGIN, END = "<!-- {}: generated from the code -->\n", "<!-- end of what is generated -->\n"


def generated() -> dict[Path, str]:
    """The page, and what belongs into it."""
    text = PAGE.read_text(encoding="utf-8")
    for program, families in (("operator", operator_families()), ("worker", worker_families())):
        head, begin, rest = text.partition(BEGIN.format(program))
        _, end, tail = rest.partition(END)
        text = "".join((head, begin, table(families), end, tail))
    return {PAGE: text}


def table(families: Iterable[Metric]) -> str:
    """One line a metric, under the name that it is asked for by."""
    lines = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for family in sorted(families, key=lambda family: family.name):
        labels = ", ".join(f"`{label}`" for label in family._labelnames)
        lines.append(f"| `{exposed_name(family)}` | {family.type} | {labels} | {family.documentation} |")
    return "\n".join(lines) + "\n"


def exposed_name(family: Metric) -> str:
    """A counter's ends with `_total`; to a histogram's belong `_bucket`, `_sum` and `_count`."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def operator_families() -> list[Metric]:
    """The operator's own, without those of Python and the process."""
    return _families(vars(operator_metrics).values())


def worker_families() -> list[Metric]:
    """The worker's own, without those of the process."""
    return [*_families(vars(Metrics(CollectorRegistry())).values()), *ContainerMemory().describe()]


def _families(things: Iterable[object]) -> list[Metric]:
    metrics = [thing for thing in things if isinstance(thing, MetricWrapperBase)]
    made = [(metric, family) for metric in metrics for family in metric.describe()]
    return [_with_labels(family, metric._labelnames) for metric, family in made]


def _with_labels(family: Metric, labels: Iterable[str]) -> Metric:
    family._labelnames = tuple(labels)
    return family

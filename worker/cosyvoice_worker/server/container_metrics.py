"""The container's memory as the kernel counts it, read anew at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from cosyvoice_worker import cgroup
from cosyvoice_worker.cgroup.high import MemoryHigh


class ContainerMemory(Collector):
    """`memory_high` tells what is in force. What the kernel does not count (cgroup v1) is left out."""

    def __init__(self, memory_high: Callable[[], MemoryHigh | None]) -> None:
        self._memory_high = memory_high

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        told = self._memory_high()
        amount = GaugeMetricFamily(
            "cosyvoice_memory_bytes",
            "Memory of the container: used beyond file pages (current), memory.high and the limit (max) if there are.",
            labels=["kind"],
        )
        applied = None if told is None else told.applied
        for kind, count in (("current", cgroup.memory_used()), ("high", applied), ("max", cgroup.memory_limit())):
            if count is not None:
                amount.add_metric([kind], count)
        yield amount
        throttled = cgroup.throttled()
        if throttled is not None:
            yield CounterMetricFamily(
                "cosyvoice_memory_high_events", "How often the kernel slowed the worker down.", value=throttled
            )
        pressure = cgroup.pressure_seconds()
        if pressure:
            waiting = CounterMetricFamily(
                "cosyvoice_memory_pressure_seconds",
                "Time in which some or all (full) of the container's tasks waited for memory.",
                labels=["share"],
            )
            for share, seconds in pressure.items():
                waiting.add_metric([share], seconds)
            yield waiting

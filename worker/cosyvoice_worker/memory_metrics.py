"""The container's memory for Prometheus: read when it asks, so that there is nothing to keep up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from cosyvoice_worker.cgroup import oom_kills, pressure_seconds, throttled
from cosyvoice_worker.cgroup.places import MEMBERSHIP, MOUNT
from cosyvoice_worker.cgroup.usage import memory_usage

Family = GaugeMetricFamily | CounterMetricFamily


class ContainerMemory(Collector):
    """What the kernel has no number for has no series: memory.high and PSI exist in cgroup version 2 only."""

    def __init__(self, mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> None:
        self._mount = mount
        self._membership = membership

    def collect(self) -> Iterator[Family]:
        """One look at the cgroup's files."""
        use = memory_usage(self._mount, self._membership)
        yield _gauge("current", "Memory charged to the container, page cache included.", use.current)
        yield _gauge("working_set", "The same without file pages that were not used lately.", use.working_set)
        yield _gauge("high", "memory.high: where the kernel slows allocations down.", use.high)
        yield _gauge("max", "The memory limit.", use.max)
        yield _count("oom_kills", "Processes killed for memory.", oom_kills(self._mount, self._membership))
        yield _count("throttled", "Allocations slowed down at memory.high.", throttled(self._mount, self._membership))
        pressure = CounterMetricFamily(
            "cosyvoice_memory_pressure_seconds", "Time in which some or all tasks waited for memory.", labels=["share"]
        )
        for share, seconds in pressure_seconds(self._mount, self._membership).items():
            pressure.add_metric([share], seconds)
        yield pressure

    def describe(self) -> Iterator[Family]:
        """The families, whatever the kernel has: registering looks for clashing names."""
        return self.collect()


def _gauge(name: str, meaning: str, count: int | None) -> Family:
    family = GaugeMetricFamily(f"cosyvoice_memory_{name}_bytes", meaning)
    if count is not None:
        family.add_metric([], count)
    return family


def _count(name: str, meaning: str, count: int | None) -> Family:
    family = CounterMetricFamily(f"cosyvoice_memory_{name}", meaning)
    if count is not None:
        family.add_metric([], count)
    return family

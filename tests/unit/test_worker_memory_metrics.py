"""The container's memory as Prometheus gets it, from both versions of the cgroup files."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from cosyvoice_worker.memory_metrics import ContainerMemory

MI = 1024 * 1024
UNLIMITED = 9223372036854771712
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=500000"

V2 = {
    "cgroup.controllers": "cpu memory",
    "memory.current": 100 * MI,
    "memory.stat": f"anon 1\ninactive_file {30 * MI}\nactive_file {5 * MI}",
    "memory.high": 150 * MI,
    "memory.max": 200 * MI,
    "memory.events": "low 0\nhigh 7\nmax 0\noom 1\noom_kill 1",
    "memory.pressure": PRESSURE,
}
V2_OWN_LEAVES = V2 | {"memory.high": "max", "engine-1/memory.high": 90 * MI, "engine-2/memory.high": 120 * MI}
V1 = {
    "memory/memory.usage_in_bytes": 100 * MI,
    "memory/memory.stat": f"inactive_file 0\ntotal_inactive_file {30 * MI}",
    "memory/memory.limit_in_bytes": 200 * MI,
    "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1",
}
KNOWN = {
    "cosyvoice_memory_current_bytes": 100.0 * MI,
    "cosyvoice_memory_working_set_bytes": 70.0 * MI,
    "cosyvoice_memory_max_bytes": 200.0 * MI,
    "cosyvoice_memory_oom_kills_total": 1.0,
}
VERSION_2_ONLY = {
    "cosyvoice_memory_throttled_total": 7.0,
    'cosyvoice_memory_pressure_seconds_total{"some"}': 2.5,
    'cosyvoice_memory_pressure_seconds_total{"full"}': 0.5,
}
HIGH = "cosyvoice_memory_high_bytes"
WITHOUT_LIMIT = {name: value for name, value in KNOWN.items() if name != "cosyvoice_memory_max_bytes"}


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (V2, KNOWN | VERSION_2_ONLY | {HIGH: 150.0 * MI}),
        (V2_OWN_LEAVES, KNOWN | VERSION_2_ONLY | {HIGH: 90.0 * MI}),
        (V2 | {"memory.high": "max", "memory.max": "max"}, WITHOUT_LIMIT | VERSION_2_ONLY),
        (V1, KNOWN),
        (V1 | {"memory/memory.limit_in_bytes": UNLIMITED}, WITHOUT_LIMIT),
        ({}, {}),
    ],
    ids=["version 2", "high on the engines", "version 2, no limits", "version 1", "version 1, no limit", "no cgroup"],
)
def test_what_the_kernel_says_is_told_and_nothing_else(tmp_path: Path, files: dict[str, object], told):
    mount, membership = tmp_path / "cgroup", tmp_path / "membership"
    mount.mkdir()
    membership.write_text("0::/\n")
    for name, content in files.items():
        (mount / name).parent.mkdir(parents=True, exist_ok=True)
        (mount / name).write_text(f"{content}\n")
    registry = CollectorRegistry()
    registry.register(ContainerMemory(mount, membership))

    samples = [sample for family in registry.collect() for sample in family.samples]

    assert {_name(sample.name, sample.labels): sample.value for sample in samples} == told


def _name(name: str, labels: dict[str, str]) -> str:
    return name + "".join(f'{{"{value}"}}' for value in labels.values())

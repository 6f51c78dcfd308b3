"""The patch that gives a node fake GPUs."""

from __future__ import annotations

import json

from dev.cluster import gpus


def test_gpus_are_added_to_capacity_and_allocatable() -> None:
    assert json.loads(gpus.patch(2)) == [
        {"op": "add", "path": "/status/capacity/nvidia.com~1gpu", "value": "2"},
        {"op": "add", "path": "/status/allocatable/nvidia.com~1gpu", "value": "2"},
    ]


def test_no_gpus_means_no_trace_of_them() -> None:
    operations = [step["op"] for step in json.loads(gpus.patch(0))]

    assert operations == ["add", "add", "remove", "remove"]

"""What the node agent reads of a PodList."""

from __future__ import annotations

from typing import Any

import pytest

from cosyvoice_operator.nodeagent.pods import parse
from tests.unit.operator.nodeagent.cgroup_tree import GIB, ID, UID, worker


def pod(**changes: Any) -> dict[str, Any]:
    """A worker pod; `changes` are to its label, its uid or its container."""
    labels = {"cosyvoice.dev/model": "narrator", "cosyvoice.dev/memory-high": changes.pop("label", str(GIB))}
    metadata = {"namespace": "speech", "name": "narrator-a", "uid": changes.pop("uid", UID), "labels": labels}
    status = {"name": "worker", "containerID": f"containerd://{ID}", "state": {"running": {}}, **changes}
    return {"metadata": metadata, "status": {"containerStatuses": [{"name": "other"}, status]}}


def test_a_running_worker_and_its_wish_are_read() -> None:
    assert parse({"items": [pod()]}) == (worker(),)


@pytest.mark.parametrize(
    "label", ["", "8Gi", "-1", "0", "1e9", "١٢٣", "9" * 20, "9" * 19, str(2**63), str(2**63 - 4096), str(2**62)]
)
def test_a_label_that_is_no_number_of_bytes_is_no_wish(label: str) -> None:
    (found,) = parse({"items": [pod(label=label)]})

    assert found.wanted is None


@pytest.mark.parametrize(
    "changes",
    [
        {"state": {"waiting": {}}},
        {"state": {"terminated": {}}},
        {"containerID": ""},
        {"containerID": f"containerd://../../{ID}"},
        {"uid": "../.."},
        {"name": "stage"},
    ],
    ids=["waits", "ended", "not created", "an id that is none", "a uid that is none", "another container"],
)
def test_other_containers_are_left_out(changes: dict[str, Any]) -> None:
    assert parse({"items": [pod(**changes)]}) == ()


@pytest.mark.parametrize("pods", [{}, {"items": None}, {"items": [{"metadata": {"uid": UID, "name": "a"}}]}])
def test_nothing_is_read_of_nothing(pods: dict[str, Any]) -> None:
    assert parse(pods) == ()

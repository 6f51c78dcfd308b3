"""A bad version after a good one: the operator goes back by itself, and that costs no restart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dev.demo import speak
from dev.playground import Playground


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("missing-file", "MissingFile"), pytest.param("missing-tensor", "MissingTensor", marks=pytest.mark.long)],
)
def test_a_bad_version_is_rolled_back_and_costs_nobody_a_restart(
    playground: Playground, bad_path: Callable[[str], str], tiny_path: str, fault: str, reason: str
) -> None:
    playground.apply_model("narrator", path=tiny_path, version="v1")
    playground.wait_ready("narrator")
    (old,) = playground.pods("narrator")

    playground.apply_model("narrator", path=bad_path(fault), version="v2")
    playground.wait_condition("narrator", "RolledBack", reason="RolledBack")

    status = playground.model("narrator")["status"]
    assert (status["targetVersion"], status["activeVersion"], status["ready"]) == ("v2", "v1", "1/1")
    assert status["message"].startswith(f"v2 failed: {reason}: ")
    assert [entry["reason"] for entry in status["quarantine"]] == [status["failures"][0]["reason"]] == [reason]
    assert {kind: playground.condition("narrator", kind)["status"] for kind in ("Ready", "Available", "Stalled")} == {
        "Ready": "False",
        "Available": "True",
        "Stalled": "True",
    }
    with speak.port_forward(playground.kubectl, playground.namespace, "narrator") as url:
        assert speak.say(url, "Hello there.", None, seed=7, timeout=60).sample_rate == 24000

    playground.apply_model("narrator", path=tiny_path, version="v1")
    playground.wait_ready("narrator")
    (after,) = playground.pods("narrator")
    assert after["metadata"]["uid"] == old["metadata"]["uid"]
    assert [container["restartCount"] for container in after["status"]["containerStatuses"]] == [0]

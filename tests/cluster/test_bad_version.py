"""A bad version after a good one: what served goes on serving, and going back costs no restart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dev.demo import speak
from dev.playground import Playground
from dev.waiting import wait_for


@pytest.mark.parametrize("fault", ["missing-file", pytest.param("missing-tensor", marks=pytest.mark.long)])
def test_the_old_version_serves_on_while_the_new_one_fails(
    playground: Playground, bad_path: Callable[[str], str], tiny_path: str, fault: str
) -> None:
    playground.apply_model("narrator", path=tiny_path, version="v1")
    playground.wait_ready("narrator")
    (old,) = playground.pods("narrator")

    playground.apply_model("narrator", path=bad_path(fault), version="v2")
    wait_for("the failure", lambda: playground.model("narrator")["status"].get("failures"), timeout=180)

    status = playground.model("narrator")["status"]
    assert (status["targetVersion"], status["activeVersion"], status["readyReplicas"]) == ("v2", "v1", 1)
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

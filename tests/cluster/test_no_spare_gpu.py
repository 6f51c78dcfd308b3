"""Rollouts where every GPU is taken: never a deadlock, never a rollback for want of room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dev.playground import Playground
from dev.waiting import wait_for
from tests.cluster.fake_gpus import add_one, fake_gpus, resources
from tests.cluster.traffic import calling, check_whole


def apply(place: Playground, name: str, path: str, version: str, *, replicas: int = 1, **rollout: str) -> None:
    worker = {"replicas": replicas, "resources": resources()}
    place.apply_model(name, path=path, version=version, worker=worker, rollout=rollout)


def test_it_waits_for_room_unless_told_otherwise(playground: Playground, tiny_path: str) -> None:
    with fake_gpus("node1"):
        apply(playground, "patient", tiny_path, "v1")
        playground.wait_ready("patient")
        apply(playground, "patient", tiny_path, "v2")

        waiting = playground.wait_condition("patient", "Progressing", reason="NoCapacity")
        status = playground.model("patient")["status"]
        assert "Insufficient nvidia.com/gpu" in waiting["message"]
        assert waiting["message"].endswith("; it is rolled out as soon as there is room")
        assert (status["activeVersion"], status.get("quarantine", [])) == ("v1", [])
        assert playground.condition("patient", "Available")["status"] == "True"

        add_one("node1")
        assert playground.wait_ready("patient")["status"]["activeVersion"] == "v2"


@pytest.mark.long
def test_it_fails_and_says_so_where_that_was_asked_for(playground: Playground, tiny_path: str) -> None:
    with fake_gpus("node1"):
        apply(playground, "strict", tiny_path, "v1", onNoCapacity="Fail")
        playground.wait_ready("strict")
        apply(playground, "strict", tiny_path, "v2", onNoCapacity="Fail")

        stalled = playground.wait_condition("strict", "Stalled", reason="NoCapacity")
        status = playground.model("strict")["status"]
        assert stalled["message"].endswith("; make room for one more, or choose another spec.rollout.onNoCapacity")
        assert (status["activeVersion"], status.get("quarantine", [])) == ("v1", [])
        assert playground.condition("strict", "Available")["status"] == "True"


@pytest.mark.long
def test_it_replaces_one_replica_after_the_other_and_nobody_loses_a_word(
    playground: Playground, good_paths: tuple[str, ...], tmp_path: Path
) -> None:
    with fake_gpus("node1", "node2"):
        apply(playground, "modest", good_paths[0], "v1", replicas=2, onNoCapacity="Replace")
        playground.wait_ready("modest")

        with calling(playground, "modest", tmp_path) as traffic:
            traffic.wait_for_version("v1")
            apply(playground, "modest", good_paths[1], "v2", replicas=2, onNoCapacity="Replace")
            playground.wait_ready("modest", timeout=300)
            traffic.wait_for_version("v2")

    assert playground.model("modest")["status"]["activeVersion"] == "v2"
    check_whole(traffic.replies(), {"v1": {}, "v2": {}})


@pytest.mark.long
def test_a_bad_version_that_replaced_a_replica_goes_back_the_same_way(
    playground: Playground, tiny_path: str, bad_path: Callable[[str], str], tmp_path: Path
) -> None:
    with fake_gpus("node1", "node2"):
        apply(playground, "modest", tiny_path, "v1", replicas=2, onNoCapacity="Replace")
        playground.wait_ready("modest")
        before = {pod["metadata"]["uid"] for pod in playground.pods("modest")}

        with calling(playground, "modest", tmp_path) as traffic:
            traffic.wait_for_version("v1")
            apply(playground, "modest", bad_path("missing-tensor"), "v2", replicas=2, onNoCapacity="Replace")
            playground.wait_condition("modest", "RolledBack", timeout=300)

    status = playground.model("modest")["status"]
    assert (status["activeVersion"], status["ready"]) == ("v1", "2/2")
    assert len(before & {pod["metadata"]["uid"] for pod in playground.pods("modest")}) == 1
    check_whole(traffic.replies(), {"v1": {}})


@pytest.mark.long
def test_it_swaps_in_place_where_it_may_choose(
    playground: Playground, good_paths: tuple[str, ...], tmp_path: Path
) -> None:
    with fake_gpus("node1"):
        apply(playground, "clever", good_paths[0], "v1", strategy="Auto")
        playground.wait_ready("clever")
        before = [pod["metadata"]["uid"] for pod in playground.pods("clever")]

        with calling(playground, "clever", tmp_path) as traffic:
            traffic.wait_for_version("v1")
            apply(playground, "clever", good_paths[1], "v2", strategy="Auto")
            playground.wait_ready("clever")
            traffic.wait_for_version("v2")

    wait_for("one pod", lambda: len(playground.pods("clever")) == 1)
    assert [pod["metadata"]["uid"] for pod in playground.pods("clever")] == before
    check_whole(traffic.replies(), {"v1": {}, "v2": {}})

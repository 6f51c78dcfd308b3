"""A good version after a good one, by every way to roll out: no request fails, and each reply is of one version."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dev.playground import Playground
from tests.cluster import memory
from tests.cluster.served import Served


def test_a_good_version_by_new_pods_costs_nobody_a_word(
    shared_playground: Playground, good_paths: tuple[str, ...], tmp_path: Path
) -> None:
    model = Served(shared_playground, name="rolling", strategy="RollingUpdate", paths=good_paths, replicas=2)
    model.ensure()
    first, pods = model.version, model.pods()

    with model.calls(tmp_path) as traffic:
        traffic.wait_for_version(first)
        second = model.apply_good()
        shared_playground.wait_ready(model.name)
        traffic.wait_for_version(second)

    model.check(traffic, first, second)
    assert model.pods().keys().isdisjoint(pods)
    shared_playground.run("delete", "cosyvoicemodel", model.name, "--wait=false")


def test_a_good_version_in_the_same_pods_costs_nobody_a_word(
    shared_playground: Playground, good_paths: tuple[str, ...], tmp_path: Path
) -> None:
    """A pod that comes later, because one was lost, speaks the new version at once."""
    model = Served(shared_playground, name="swapping", strategy="HotSwap", paths=good_paths, replicas=2)
    model.ensure()
    first, pods = model.version, model.pods()

    with model.calls(tmp_path) as traffic:
        traffic.wait_for_version(first)
        second = model.apply_good()
        shared_playground.wait_ready(model.name)
        swapped = time.time()
        assert model.pods() == pods
        traffic.wait_for_version(second)
        shared_playground.run("delete", "pod", shared_playground.pods(model.name)[0]["metadata"]["name"])
        shared_playground.wait_ready(model.name)

    model.check(traffic, first, second)
    assert {reply.version for reply in traffic.replies() if reply.began > swapped} == {second}
    assert len(model.pods().keys() & pods.keys()) == 1
    shared_playground.run("delete", "cosyvoicemodel", model.name, "--wait=false")


@pytest.mark.long
def test_swap_after_swap_stays_within_the_memory_of_the_pod(
    *,
    shared_playground: Playground,
    good_paths: tuple[str, ...],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """Each version is staged into the pod's memory beside the one that serves, which goes afterwards."""
    model = Served(shared_playground, name="frugal", strategy="HotSwap", paths=good_paths)
    model.ensure()
    before, versions = model.pods(), [model.version]

    with model.calls(tmp_path) as traffic:
        for _ in range(2):
            traffic.wait_for_version(model.version)
            versions.append(model.apply_good())
            shared_playground.wait_ready(model.name)
        traffic.wait_for_version(model.version)

    (pod,) = shared_playground.pods(model.name)
    usages = {container: memory.usage(pod, container) for container in ("worker", "stager")}
    for container, usage in usages.items():
        record_property(container, str(usage))
    assert {container: usage.refused for container, usage in usages.items()} == {"worker": 0, "stager": 0}
    assert all(usage.peak < usage.limit for usage in usages.values()), usages
    assert model.pods() == before
    model.check(traffic, *versions)
    shared_playground.run("delete", "cosyvoicemodel", model.name, "--wait=false")

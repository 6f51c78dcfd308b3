"""A good version after a good one, by every way to roll out: no request fails, and each reply is of one version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dev.playground import Playground
from tests.cluster import memory
from tests.cluster.served import Served


@pytest.mark.parametrize("strategy", ["RollingUpdate", "HotSwap"])
def test_a_good_version_costs_nobody_a_word(
    shared_playground: Playground, good_paths: tuple[str, ...], tmp_path: Path, strategy: str
) -> None:
    model = Served(shared_playground, name=strategy.lower(), strategy=strategy, paths=good_paths, replicas=2)
    model.ensure()
    first, pods = model.version, model.pods()

    with model.calls(tmp_path) as traffic:
        traffic.wait_for_version(first)
        second = model.apply_good()
        shared_playground.wait_ready(model.name)
        traffic.wait_for_version(second)

    model.check(traffic, first, second)
    replies = traffic.replies()
    last_of_the_first = max(reply.began for reply in replies if reply.version == first)
    assert [reply for reply in replies if reply.version == first and reply.began > last_of_the_first] == []
    assert (model.pods() == pods) is (strategy == "HotSwap")
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

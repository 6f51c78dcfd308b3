"""A good version after a good one, by every way to roll out: no request fails, and each reply is of one version."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.playground import Playground
from tests.cluster.served import Served


@pytest.mark.parametrize("strategy", ["RollingUpdate", "HotSwap"])
def test_a_good_version_costs_nobody_a_word(
    shared_playground: Playground, good_paths: tuple[str, str], tmp_path: Path, strategy: str
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

"""Which values of spec.worker.memoryHigh are refused, and with which arithmetic."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_operator import memory_high, names, revision
from cosyvoice_operator.api import Identity
from cosyvoice_operator.errors import InvalidSpecError
from cosyvoice_operator.manifests import pod_template
from cosyvoice_operator.manifests.config import model_config
from cosyvoice_operator.memory_high import MIB, Needs
from cosyvoice_operator.revision import Resolved
from tests.unit.operator.builders import POLICY, model

GIB = 1024 * MIB


def resolve(high: object, limit: object = "8Gi", **spec: Any) -> Resolved:
    worker = {"memoryHigh": high, "resources": {"limits": {"memory": limit}}}
    return revision.resolve(model(worker=worker, **spec).spec, POLICY)


HOT_SWAP = {"rollout": {"strategy": "HotSwap"}}
AUTO = {"rollout": {"strategy": "Auto"}}
RECYCLE = {"engine": {"recycle": {"maxRequests": 10}}}
CUDA = {"engine": {"device": "cuda"}}
CASTS = {"engine": {"dtype": "bfloat16"}}

LEAST: dict[str, tuple[dict[str, Any], int]] = {
    "one engine": ({}, 32 + 256 + 64),
    "one engine that copies the language model": (CASTS, 32 + 256 + 64),
    "a second one while a version is swapped in place": (HOT_SWAP, 32 + 2 * 256 + 64),
    "a second one where there is no room for a pod": (AUTO, 32 + 2 * 256 + 64),
    "a second one that is fresh": (RECYCLE, 32 + 2 * 256 + 64),
    "on a GPU": (CUDA, 32 + 352 + 64),
    "on a GPU, two": ({**CUDA, **HOT_SWAP}, 32 + 2 * 352 + 64),
}


@pytest.mark.parametrize(("spec", "least"), LEAST.values(), ids=LEAST)
def test_the_least_value_is_taken_and_one_below_it_is_refused(spec: dict[str, Any], least: int) -> None:
    assert resolve(f"{least}Mi", **spec).memory_high == least * MIB

    with pytest.raises(InvalidSpecError, match=f"of headroom are {least} MiB; "):
        resolve(least * MIB - 1, **spec)


def test_the_refusal_has_the_whole_arithmetic() -> None:
    with pytest.raises(InvalidSpecError) as raised:
        resolve("500Mi", **HOT_SWAP)

    assert str(raised.value) == (
        "spec.worker.memoryHigh: 500 MiB is below what a worker holds at least: 32 MiB for the front, 2 engines (of "
        "two versions, while one takes over) of 256 MiB (PyTorch 160 MiB, speech 96 MiB) and 64 MiB of headroom are "
        "608 MiB; the weights are not counted, as their pages are shared and charged to the staging. Below that the "
        "worker would not end but wait for memory for ever: raise it, or leave it out"
    )


def test_weights_that_each_engine_copies_are_told_of() -> None:
    with pytest.raises(InvalidSpecError, match="each engine's copy of the language model in bfloat16 comes on top"):
        resolve("1Mi", **CASTS)


@pytest.mark.parametrize("high", ["8Gi", "8.1Gi", 2**33, "9e9"])
def test_a_value_that_the_limit_forestalls_is_refused(high: object) -> None:
    with pytest.raises(InvalidSpecError, match="is not below the worker's memory limit of 8192 MiB"):
        resolve(high)


def test_the_configured_limit_counts_where_the_user_set_none() -> None:
    with pytest.raises(InvalidSpecError, match="limit of 8192 MiB"):
        revision.resolve(model(worker={"memoryHigh": "8Gi"}).spec, POLICY)
    assert revision.resolve(model(worker={"memoryHigh": "8191Mi"}).spec, POLICY).memory_high == 8191 * MIB


@given(
    high=st.integers(1, 16 * GIB),
    limit=st.integers(1, 16 * GIB),
    engines=st.integers(1, 2),
    device=st.sampled_from(["cpu", "cuda"]),
)
def test_a_value_is_taken_exactly_between_what_is_needed_and_the_limit(
    high: int, limit: int, engines: int, device: str
) -> None:
    needed = Needs(device=device, engines=engines, casts=False)
    try:
        memory_high.check(high, limit, needed)
        taken = True
    except InvalidSpecError:
        taken = False

    assert taken == (needed.total <= high < limit)


def test_nothing_of_it_is_anywhere_where_it_is_not_wished_for() -> None:
    resolved = revision.resolve(model().spec, POLICY)
    document = model_config(Identity(namespace="speech", name="narrator", uid="u"), "r", resolved)

    assert "memoryHighBytes" not in document
    assert names.LABEL_MEMORY_HIGH not in pod_template("narrator", "r", resolved)["metadata"]["labels"]


def test_worker_and_node_agent_are_told_the_same_number_of_bytes() -> None:
    resolved = resolve("7.5Gi")
    document = model_config(Identity(namespace="speech", name="narrator", uid="u"), "r", resolved)

    assert document["memoryHighBytes"] == 8_053_063_680
    labels = pod_template("narrator", "r", resolved)["metadata"]["labels"]
    assert labels[names.LABEL_MEMORY_HIGH] == "8053063680"


def test_it_is_part_of_a_revision_whatever_its_spelling() -> None:
    def identity(high: object) -> str:
        return revision.identity(model(worker={"memoryHigh": high}).spec)

    assert identity("7Gi") == identity("7168Mi") == identity(7 * GIB)
    assert len({identity("7Gi"), identity("6Gi"), revision.identity(model().spec)}) == 3

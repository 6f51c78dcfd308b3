"""Choosing speech tokens: recorded choices of the original, and what holds for every distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from cosyvoice_worker.models.cosyvoice2.config import SamplingConfig
from cosyvoice_worker.models.cosyvoice2.sampling import RepetitionAwareSampling, drawing, nucleus, without

Golden = Mapping[str, npt.NDArray[Any]]

PUBLISHED = SamplingConfig(top_p=0.8, top_k=25, window=10, repetition_share=0.1)
RECORDED = range(6)

scores = st.lists(st.floats(-20, 20, width=32), min_size=2, max_size=60).map(torch.tensor)


def most_likely(weights: Tensor) -> int:
    return int(weights.argmax())


@pytest.mark.parametrize("case", RECORDED)
def test_the_candidates_are_those_recorded(case: int, golden: Golden, close: Any) -> None:
    candidates = nucleus(torch.from_numpy(golden[f"sampling/{case}/scores"]), PUBLISHED.top_p, PUBLISHED.top_k)

    assert candidates.ids.tolist() == golden[f"sampling/{case}/nucleus_ids"].tolist()
    close(candidates.weights, golden[f"sampling/{case}/nucleus_prob"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", RECORDED)
def test_the_choice_is_the_one_recorded(case: int, golden: Golden) -> None:
    draws: list[int] = []

    def draw(weights: Tensor) -> int:
        draws.append(weights.numel())
        return most_likely(weights)

    decoded = golden[f"sampling/{case}/decoded"].tolist()
    chosen = RepetitionAwareSampling(PUBLISHED, draw)(torch.from_numpy(golden[f"sampling/{case}/scores"]), decoded)

    assert chosen == golden[f"sampling/{case}/returned_if_argmax"][0]
    assert len(draws) - 1 == golden[f"sampling/{case}/fallback"][0]


@pytest.mark.parametrize("case", [3, 5])
def test_the_second_draw_is_from_all_other_ids(case: int, golden: Golden, close: Any) -> None:
    repeated = int(golden[f"sampling/{case}/nucleus_ids"][0])

    probabilities = without(torch.from_numpy(golden[f"sampling/{case}/scores"]), repeated)

    close(probabilities, golden[f"sampling/{case}/fallback_prob"], rtol=1e-5, atol=1e-6)


@given(scores, st.floats(0.05, 1), st.integers(1, 30))
def test_candidates_are_the_fewest_most_likely_that_reach_top_p(values: Tensor, top_p: float, top_k: int) -> None:
    probabilities = values.softmax(dim=0)

    candidates = nucleus(values, top_p, top_k)

    size = candidates.ids.numel()
    assert 1 <= size <= min(top_k, values.numel())
    assert sorted(candidates.weights.tolist(), reverse=True) == candidates.weights.tolist()
    others = [p for id_, p in enumerate(probabilities.tolist()) if id_ not in candidates.ids.tolist()]
    assert all(p <= candidates.weights[-1] for p in others)
    assert float(candidates.weights[:-1].sum()) < top_p + 1e-5
    if size < min(top_k, values.numel()):
        assert float(candidates.weights.sum()) > top_p - 1e-5


@given(scores, st.data(), st.integers(0, 2**63 - 1))
def test_a_repeated_choice_is_drawn_again_and_never_kept(values: Tensor, data: st.DataObject, seed: int) -> None:
    ids = st.integers(0, values.numel() - 1)
    decoded = data.draw(st.lists(ids, max_size=20))
    before = values.clone()
    draws: list[int] = []
    draw = drawing(torch.Generator().manual_seed(seed))

    def noting(weights: Tensor) -> int:
        draws.append(draw(weights))
        return draws[-1]

    chosen = RepetitionAwareSampling(PUBLISHED, noting)(values, decoded)

    first = int(nucleus(values, PUBLISHED.top_p, PUBLISHED.top_k).ids[draws[0]])
    assert (len(draws) == 2) == (first in decoded[-PUBLISHED.window :])
    assert chosen == (first if len(draws) == 1 else draws[1])
    assert len(draws) == 1 or chosen != first
    assert torch.equal(values, before)


@given(scores, st.integers(0, 2**63 - 1))
def test_the_same_seed_chooses_the_same(values: Tensor, seed: int) -> None:
    chosen = {
        RepetitionAwareSampling(PUBLISHED, drawing(torch.Generator().manual_seed(seed)))(values, []) for _ in range(2)
    }

    assert len(chosen) == 1


def test_a_masked_id_is_never_chosen() -> None:
    values = torch.zeros(4)
    values[2] = -torch.inf
    sampling = RepetitionAwareSampling(PUBLISHED, drawing(torch.Generator().manual_seed(1)))

    chosen = {sampling(values, [0, 1, 3]) for _ in range(200)}

    assert chosen == {0, 1, 3}

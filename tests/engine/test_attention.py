"""Attention with relative positions: what a query sees, and that each key is scored by its distance."""

from __future__ import annotations

import math

import pytest
import torch

from cosyvoice_worker.models.cosyvoice2.attention import (
    QUERY_BLOCK,
    RelativeSelfAttention,
    align_distances,
    chunk_mask,
    relative_encoding,
)

CHANNELS, HEADS = 16, 2
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def attention():
    module = RelativeSelfAttention(CHANNELS, HEADS).requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator) / 4)
    return module


def by_the_formula(attention, x, mask):
    """Every pair of query and key on its own, with an encoding made for its distance."""
    length, width = x.shape[1], CHANNELS // HEADS
    query, key, value = (
        linear(x)[0].view(length, HEADS, width)
        for linear in (attention.linear_q, attention.linear_k, attention.linear_v)
    )
    distance = torch.arange(length)[:, None] - torch.arange(length)
    encoding = relative_encoding(length, CHANNELS, CPU)[length - 1 - distance]  # (T, T, C)
    position = attention.linear_pos(encoding).view(length, length, HEADS, width)
    scores = torch.einsum("ihd,jhd->hij", query + attention.pos_bias_u, key)
    scores += torch.einsum("ihd,ijhd->hij", query + attention.pos_bias_v, position)
    scores = (scores / math.sqrt(width)).masked_fill(~mask, -math.inf)
    mixed = torch.einsum("hij,jhd->ihd", scores.softmax(-1), value)
    return attention.linear_out(mixed.reshape(1, length, CHANNELS))


@pytest.mark.parametrize("length", [1, 2, 7, QUERY_BLOCK, QUERY_BLOCK + 1, 2 * QUERY_BLOCK + 30])
@pytest.mark.parametrize("chunk", [None, 25])
def test_equals_the_formula_whatever_the_length(attention, length, chunk):
    x = torch.randn(1, length, CHANNELS, generator=torch.Generator().manual_seed(length))
    mask = None if chunk is None else chunk_mask(length, chunk, CPU)

    out = attention(x, relative_encoding(length, CHANNELS, CPU), mask, lambda: None)

    everything = torch.ones(length, length, dtype=torch.bool)
    torch.testing.assert_close(out, by_the_formula(attention, x, everything if mask is None else mask))


def test_a_chunk_sees_itself_and_all_before_it():
    assert chunk_mask(5, 2, CPU).int().tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1],
    ]


def test_a_distance_is_encoded_as_sine_and_cosine_in_turn():
    encoding = relative_encoding(3, 4, CPU)

    assert encoding.shape == (5, 4)
    for row, distance in enumerate((2, 1, 0, -1, -2)):
        expected = [f(distance * frequency) for frequency in (1.0, 0.01) for f in (math.sin, math.cos)]
        assert encoding[row].tolist() == pytest.approx(expected, abs=1e-6)


def test_scores_move_from_distances_to_keys():
    distances = torch.tensor([[3, 2, 1, 0, -1, -2], [3, 2, 1, 0, -1, -2], [3, 2, 1, 0, -1, -2]])  # of queries 1, 2, 3

    assert align_distances(distances).tolist() == [[1, 0, -1, -2], [2, 1, 0, -1], [3, 2, 1, 0]]


def test_each_block_of_queries_is_a_step(attention):
    length = 2 * QUERY_BLOCK + 1
    steps = []

    attention(
        torch.randn(1, length, CHANNELS), relative_encoding(length, CHANNELS, CPU), None, lambda: steps.append(None)
    )

    assert len(steps) == 3

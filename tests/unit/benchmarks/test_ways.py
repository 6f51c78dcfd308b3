"""The benchmarks compare two ways to the same model: each must really load it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks._loaders import load_once
from benchmarks._ways import WAYS, copying, mapped
from dev.models import tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model."""
    return tiny.write(tmp_path_factory.mktemp("model") / "tiny")


def test_both_ways_lead_to_the_same_weights(model: Path) -> None:
    ours, theirs = mapped(model)().modules, copying(model)().modules

    for our, their in zip(ours, theirs, strict=True):
        for name, parameter in our.named_parameters():
            owner, _, leaf = name.rpartition(".")
            # The other way keeps direction and length of a weight-normed convolution: its weight is computed on use.
            torch.testing.assert_close(parameter, getattr(their.get_submodule(owner), leaf), check_device=False)


@pytest.mark.parametrize("way", WAYS)
def test_a_loading_process_says_what_it_took(model: Path, way: str) -> None:
    load = load_once(way, model)

    assert load.load > 0
    assert load.peak >= load.growth

"""Hollow modules and what fills them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from cosyvoice_worker.outcome import Outcome, Phase, Reason, WorkerError
from cosyvoice_worker.weights.assign import assign
from cosyvoice_worker.weights.build import hollow


class Model(nn.Module):
    """Parameters of several layers, a parameter and a table of its own, and noise that no file holds."""

    table: Tensor
    noise: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.linear = nn.Linear(4, 3)
        self.conv = nn.ConvTranspose1d(3, 2, 3)
        self.norm = nn.LayerNorm(2)
        self.alpha = nn.Parameter(torch.empty(2))
        self.register_buffer("table", torch.arange(4.0), persistent=False)
        self.register_buffer("noise", torch.randn(3, generator=torch.Generator().manual_seed(0)), persistent=False)


def weights() -> dict[str, Tensor]:
    return {name: torch.rand(tensor.shape) for name, tensor in Model().state_dict().items()}


def outcome_of(tensors: dict[str, Tensor]) -> Outcome:
    with pytest.raises(WorkerError) as raised:
        assign(hollow(Model), tensors, "llm.pt")
    return raised.value.outcome


def test_a_hollow_module_has_tables_but_no_parameters() -> None:
    model = hollow(Model)

    assert all(parameter.is_meta for parameter in model.parameters())
    assert torch.equal(model.table, torch.arange(4.0))
    assert torch.equal(model.noise, Model().noise)
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_building_it_does_not_touch_the_global_random_state() -> None:
    before = torch.get_rng_state()

    hollow(Model)

    assert torch.equal(torch.get_rng_state(), before)


def test_modules_built_afterwards_are_initialised_as_ever() -> None:
    hollow(Model)

    model = Model()

    assert not any(parameter.is_meta for parameter in model.parameters())
    assert torch.equal(model.norm.weight, torch.ones(2))


def test_assigned_weights_are_the_tensors_themselves() -> None:
    model, tensors = hollow(Model), weights()

    assign(model, tensors, "llm.pt")

    for name, parameter in model.named_parameters():
        assert parameter.data_ptr() == tensors[name].data_ptr()
        assert not parameter.requires_grad


def test_it_then_computes_what_an_ordinary_module_computes() -> None:
    model, tensors, ordinary = hollow(Model), weights(), Model()
    assign(model, tensors, "llm.pt")
    ordinary.load_state_dict(tensors)
    x = torch.rand(1, 3, 4)

    assert torch.equal(model.conv(x), ordinary.conv(x))


def test_a_missing_tensor_is_named() -> None:
    tensors = weights()
    del tensors["linear.bias"], tensors["norm.weight"]

    outcome = outcome_of(tensors)

    assert (outcome.exit_code, outcome.reason, outcome.phase) == (66, Reason.MISSING_TENSOR, Phase.BUILD)
    assert (outcome.file, outcome.tensor) == ("llm.pt", "linear.bias")
    assert outcome.message == (
        "llm.pt lacks the tensor linear.bias (and 1 more): is it of the same model as the directory's yaml?"
    )


def test_an_unexpected_tensor_is_named() -> None:
    outcome = outcome_of(weights() | {"llm.bias": torch.ones(1)})

    assert (outcome.exit_code, outcome.reason, outcome.tensor) == (66, Reason.UNEXPECTED_TENSOR, "llm.bias")
    assert outcome.message == "llm.pt has a tensor llm.bias that this model does not have"


def test_a_wrong_shape_is_named_with_both_shapes() -> None:
    outcome = outcome_of(weights() | {"linear.weight": torch.ones(3, 5)})

    assert (outcome.exit_code, outcome.reason, outcome.tensor) == (66, Reason.SHAPE_MISMATCH, "linear.weight")
    assert (outcome.expected, outcome.actual) == ("[3, 4]", "[3, 5]")
    assert outcome.message == "llm.pt: linear.weight has the shape [3, 5], the model needs [3, 4]"


def test_a_module_that_left_a_buffer_hollow_is_refused() -> None:
    class Forgetful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.empty(3), persistent=False)

    with pytest.raises(WorkerError, match="table has no memory after"):
        assign(hollow(Forgetful), {}, "llm.pt")

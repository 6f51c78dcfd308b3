"""Precision, and placing parameters on every kind of device that this machine has."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cosyvoice_worker.outcome import Reason, WorkerError
from cosyvoice_worker.weights.device import choose_dtype, place

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
DEVICES = [CPU, CUDA] if torch.cuda.is_available() else [CPU]


@pytest.mark.parametrize(
    ("name", "device", "dtype"),
    [
        ("auto", CPU, torch.float32),
        ("auto", CUDA, torch.float32),
        ("float32", CUDA, torch.float32),
        ("bfloat16", CPU, torch.bfloat16),
        ("float16", CUDA, torch.float16),
    ],
)
def test_a_precision_has_a_name(name: str, device: torch.device, dtype: torch.dtype) -> None:
    assert choose_dtype(name, device) == dtype


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("float16", "float16 is only for cuda: on a cpu it is slower than float32; choose float32, bfloat16 or auto"),
        ("int8", "the engine's dtype is 'int8', not one of auto, float32, float16, bfloat16"),
    ],
)
def test_a_precision_that_cannot_be_had_is_exit_code_64(name: str, message: str) -> None:
    with pytest.raises(WorkerError) as raised:
        choose_dtype(name, CPU)

    assert raised.value.outcome.reason == Reason.INVALID_CONFIG
    assert raised.value.outcome.exit_code == 64
    assert str(raised.value) == message


def test_on_the_cpu_a_parameter_of_the_wanted_precision_stays_where_it_is() -> None:
    module = nn.Linear(3, 2)
    before = [parameter.data_ptr() for parameter in module.parameters()]

    place(module, CPU, torch.float32)

    assert [parameter.data_ptr() for parameter in module.parameters()] == before


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_parameter_and_buffer_arrives(device: torch.device, dtype: torch.dtype) -> None:
    module = nn.Sequential(nn.Embedding(3000, 4000), nn.Linear(7, 3), nn.BatchNorm1d(3)).requires_grad_(False)
    expected = {name: tensor.to(dtype) for name, tensor in module.named_parameters()}

    place(module, device, dtype)

    for name, parameter in module.named_parameters():
        assert parameter.device.type == device.type
        assert torch.equal(parameter.cpu(), expected[name])
    assert all(buffer.device.type == device.type for buffer in module.buffers())

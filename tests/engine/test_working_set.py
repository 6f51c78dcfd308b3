"""memory.high that is too low for a model is refused before the model is built, with the arithmetic."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cosyvoice_worker.engine.working_set import MIB, check
from cosyvoice_worker.models.cosyvoice2.load import load
from cosyvoice_worker.outcome import Reason, WorkerError
from cosyvoice_worker.weights.private import cast_bytes, folded_bytes

LEAST = 352 * MIB


@pytest.mark.parametrize(("high", "model"), [(None, 2**40), (LEAST, 0), (LEAST + 100, 100)])
def test_what_is_enough_passes(high: int | None, model: int) -> None:
    check(high, model)


def test_too_little_is_refused_with_the_arithmetic() -> None:
    with pytest.raises(WorkerError) as raised:
        check(400 * MIB, 85 * MIB)

    outcome = raised.value.outcome
    assert (outcome.reason, outcome.retryable, outcome.exit_code) == (Reason.INVALID_CONFIG, False, 64)
    assert outcome.message == (
        "memory.high at 400.0 MiB is below what this model needs: 32.0 MiB for the front, 160.0 MiB for PyTorch, "
        "96.0 MiB for speech, 85.0 MiB for what the model does not share with its files (the folded vocoder, casts), "
        "64.0 MiB for headroom, together 437.0 MiB: raise spec.worker.memoryHigh to at least 437Mi"
    )
    assert (outcome.expected, outcome.actual) == (f"at least {437 * MIB} bytes", f"{400 * MIB} bytes")


def test_only_what_has_another_dtype_is_cast_and_shared_memory_once() -> None:
    tensor = torch.zeros(10)
    tensors = {"a": tensor, "tied to a": tensor, "b": torch.zeros(3, dtype=torch.bfloat16)}

    assert cast_bytes(tensors, torch.bfloat16) == 20
    assert cast_bytes(tensors, torch.float32) == 12


def test_a_folded_convolution_is_as_large_as_its_direction() -> None:
    tensors = {
        "new.parametrizations.weight.original0": torch.zeros(4, 1, 1),
        "new.parametrizations.weight.original1": torch.zeros(4, 2, 3),
        "old.weight_g": torch.zeros(2, 1, 1),
        "old.weight_v": torch.zeros(2, 2, 2),
        "plain.weight": torch.zeros(100),
    }

    assert folded_bytes(tensors) == (24 + 8) * 4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_bytes_told_are_those_that_no_file_s_pages_hold(tiny_model_dir: Path, dtype: str) -> None:
    told: list[int] = []
    model = load(tiny_model_dir, "cpu", dtype, lambda _: None, told.append)

    own = 0
    seen: set[int] = set()
    for module in (model.lm, model.flow, model.hift):
        for parameter in module.parameters():
            if parameter.data_ptr() not in seen and not _is_mapped(parameter):
                own += parameter.numel() * parameter.element_size()
            seen.add(parameter.data_ptr())
    assert told == [own]


def _is_mapped(parameter: torch.Tensor) -> bool:
    """Whether the tensor's memory shows a file."""
    address = parameter.data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        start, end = (int(bound, 16) for bound in fields[0].split("-"))
        if start <= address < end:
            return len(fields) == 6 and fields[5].endswith(".pt")
    return False


def test_a_model_that_does_not_fit_is_not_built(tiny_model_dir: Path) -> None:
    with pytest.raises(WorkerError) as raised:
        load(tiny_model_dir, "cpu", "float32", lambda _: None, lambda model: check(LEAST, model))

    assert raised.value.outcome.reason is Reason.INVALID_CONFIG

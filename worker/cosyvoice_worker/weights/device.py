"""In which precision a model computes, and how its weights get to where it does."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from cosyvoice_worker.outcome import Phase, Reason, fail

DTYPES = {"auto": torch.float32, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

_SLOT_ELEMENTS = 8 * 1024 * 1024
_SLOTS = 3
_ALIGNMENT = 128  # elements: keeps every parameter at a boundary that kernels like


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """The precision called `name`, float32 for "auto". Raises WorkerError (InvalidConfig) for float16 on cpu."""
    dtype = DTYPES.get(name)
    if dtype is None:
        message = f"the engine's dtype is {name!r}, not one of {', '.join(DTYPES)}"
        raise fail(Reason.INVALID_CONFIG, Phase.MAP, message, expected=" or ".join(DTYPES), actual=name)
    if dtype == torch.float16 and device.type == "cpu":
        message = "float16 is only for cuda: on a cpu it is slower than float32; choose float32, bfloat16 or auto"
        raise fail(Reason.INVALID_CONFIG, Phase.MAP, message, expected="float32 or bfloat16", actual=name)
    return dtype


def place(module: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    """Bring the module's parameters to `device` in `dtype`, and its buffers to `device`; what is there already stays.

    On the CPU a parameter of that dtype remains a view of its file; another is cast into memory of its own. To a GPU
    all parameters travel into one allocation, in large pieces through pinned memory, so that copying a piece out of
    the file overlaps with sending the one before it.
    """
    if device.type == "cpu":
        for parameter in module.parameters():
            parameter.data = parameter.data.to(dtype)
        return
    _upload(list(module.parameters()), device, dtype)
    for owner in module.modules():
        for name, buffer in owner.named_buffers(recurse=False):
            setattr(owner, name, buffer.to(device))


def _upload(parameters: list[nn.Parameter], device: torch.device, dtype: torch.dtype) -> None:
    unique = list({id(parameter): parameter for parameter in parameters}.values())
    offsets = [0]
    for parameter in unique:
        offsets.append(offsets[-1] + math.ceil(parameter.numel() / _ALIGNMENT) * _ALIGNMENT)
    whole = torch.empty(offsets[-1], dtype=dtype, device=device)
    slots = [torch.empty(_SLOT_ELEMENTS, dtype=dtype, pin_memory=True) for _ in range(_SLOTS)]
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call] # not annotated by PyTorch
    sent = [stream.record_event() for _ in slots]
    stream.wait_stream(torch.cuda.current_stream(device))
    for turn, (source, start) in enumerate(_pieces(unique, offsets)):
        slot, event = slots[turn % _SLOTS], sent[turn % _SLOTS]
        event.synchronize()  # the slot's last content has left it
        piece = slot[: source.numel()].copy_(source)
        with torch.cuda.stream(stream):
            whole[start : start + source.numel()].copy_(piece, non_blocking=True)
            event.record(stream)
    stream.synchronize()
    for parameter, start in zip(unique, offsets, strict=False):
        parameter.data = whole[start : start + parameter.numel()].view(parameter.shape)


def _pieces(parameters: list[nn.Parameter], offsets: list[int]) -> Iterator[tuple[Tensor, int]]:
    """Every parameter in pieces of at most a slot: flat values, and where they begin in the whole."""
    for parameter, start in zip(parameters, offsets, strict=False):
        flat = parameter.data.reshape(-1)
        for begin in range(0, flat.numel(), _SLOT_ELEMENTS):
            yield flat[begin : begin + _SLOT_ELEMENTS], start + begin

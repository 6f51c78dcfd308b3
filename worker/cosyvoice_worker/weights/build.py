"""Builds modules without memory for their parameters and without the work of initialising them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

Module = TypeVar("Module", bound=nn.Module)

_INITIALISERS = torch.nn.init.__name__


class _Hollow(TorchFunctionMode):
    """Sends `torch.empty`, which is what parameters are made of, to the meta device, and skips torch.nn.init.

    Everything else runs as usual: tables and noise that modules compute for themselves are real. A plain meta device
    would make those hollow too, and initialising meta tensors imports PyTorch's compiler (a second and 70 MiB).
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if getattr(func, "__module__", None) == _INITIALISERS:
            return args[0] if args else kwargs["tensor"]
        if func is torch.empty and kwargs.get("device") is None:
            kwargs["device"] = "meta"
        return func(*args, **kwargs)


def hollow(make: Callable[[], Module]) -> Module:
    """The module that `make` builds, for inference; its parameters have no memory until `assign` gives them values."""
    with _Hollow():
        module = make()
    return module.eval().requires_grad_(False)

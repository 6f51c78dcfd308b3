"""Telling a refused allocation from other failures, on any device."""

from __future__ import annotations

import errno

import torch

_CPU_WORDS = (
    "can't allocate memory",
    "DefaultCPUAllocator",
    "Cannot allocate memory",
    "can't start new thread",
    "could not create a primitive",  # oneDNN says no more than this when it gets no memory
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that memory could not be had: PyTorch has an own class for it on CUDA alone."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _CPU_WORDS)


def release() -> None:
    """Give memory of a request that failed back, so that the next one finds it in one piece."""
    torch.cuda.empty_cache()

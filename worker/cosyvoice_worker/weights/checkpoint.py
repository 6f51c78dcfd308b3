"""Reads a checkpoint as tensors that are views into the mapped file: opening gigabytes takes milliseconds.

PyTorch's own format in both its forms (zip, and the one before it, which cannot be mapped and is copied) and
safetensors. Only tensors are read: no code from a file is ever run.
"""

from __future__ import annotations

import errno
import os
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail

ACCEPTED_DTYPES = frozenset({torch.float32, torch.float16, torch.bfloat16})

_ZIP = b"PK\x03\x04"
# PyTorch's magic number as the pickle that its files began with before 1.6.
_BEFORE_ZIP = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_LFS_POINTER = b"version https://git-lfs"
_ASKED_FOR = re.compile(r"allocate (\d+) bytes")


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of the file by name, on the CPU wherever they were saved.

    Raises WorkerError: MissingFile; LFSPointer, TruncatedFile or CorruptFile for bytes that are no checkpoint;
    IncompatibleModel for entries that are no tensors, DtypeMismatch for tensors of no floating type.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(_LFS_POINTER))
        if start == _LFS_POINTER:
            message = f"{path.name} is a git-lfs pointer, not the file it stands for: fetch it with `git lfs pull`"
            raise fail(Reason.LFS_POINTER, Phase.MAP, message, file=path.name)
        content = _safetensors(path) if path.suffix == ".safetensors" else _pytorch(path, start)
    except FileNotFoundError:
        message = f"{path.name} is not in {path.parent}"
        raise fail(Reason.MISSING_FILE, Phase.MAP, message, file=path.name) from None
    return _tensors_only(path.name, content)


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except SafetensorError as error:
        raise _corrupt(path, Reason.CORRUPT_FILE, str(error)) from error


def _pytorch(path: Path, start: bytes) -> object:
    if start.startswith(_ZIP):
        if not _is_whole_zip(path):
            raise _corrupt(path, Reason.TRUNCATED_FILE, "the directory that ends the archive is missing")
        return _load(path, mmap=True)
    if start.startswith(_BEFORE_ZIP):
        return _load(path, mmap=False)
    raise _corrupt(path, Reason.CORRUPT_FILE, f"it begins with {start[:8]!r}")


def _is_whole_zip(path: Path) -> bool:
    try:
        return zipfile.is_zipfile(path)
    except zipfile.BadZipFile:  # an end record that claims further disks
        return False


def _load(path: Path, *, mmap: bool) -> object:
    try:
        content: object = torch.load(path, map_location="cpu", mmap=mmap, weights_only=True)
    except pickle.UnpicklingError as error:
        message = f"{path.name} is no plain checkpoint of tensors: {_first_line(error)}"
        raise fail(
            Reason.INCOMPATIBLE_MODEL, Phase.MAP, message, file=path.name, expected="a dict of tensors"
        ) from error
    except MemoryError as error:
        raise _no_memory(path, "") from error
    except Exception as error:
        # A damaged file ends in whatever the reader of torch stumbles over: struct.error, TypeError, AssertionError …
        if os.strerror(errno.ENOMEM) in str(error):
            raise _no_memory(path, str(error)) from error
        raise _corrupt(path, Reason.CORRUPT_FILE, _first_line(error)) from error
    return content


def _tensors_only(file: str, content: object) -> dict[str, Tensor]:
    if not isinstance(content, Mapping):
        kind = type(content).__name__
        message = f"{file} holds a {kind}, not a dict of tensors"
        raise fail(Reason.INCOMPATIBLE_MODEL, Phase.MAP, message, file=file, expected="dict", actual=kind)
    return {str(name): _checked(file, str(name), value) for name, value in content.items()}


def _checked(file: str, name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        message = f"{file}: the entry {name} is a {kind}, not a tensor; save the model's state dict alone"
        raise fail(
            Reason.INCOMPATIBLE_MODEL, Phase.MAP, message, file=file, tensor=name, expected="Tensor", actual=kind
        )
    if value.dtype not in ACCEPTED_DTYPES:
        expected = " or ".join(sorted(str(dtype).removeprefix("torch.") for dtype in ACCEPTED_DTYPES))
        actual = str(value.dtype).removeprefix("torch.")
        message = f"{file}: {name} is {actual}, expected {expected}"
        raise fail(Reason.DTYPE_MISMATCH, Phase.MAP, message, file=file, tensor=name, expected=expected, actual=actual)
    return value


def _corrupt(path: Path, reason: Reason, what: str) -> WorkerError:
    message = f"{path.name} ({path.stat().st_size} bytes) is damaged: {what}. Copy it again from its source"
    return fail(reason, Phase.MAP, message, file=path.name)


def _no_memory(path: Path, words: str) -> WorkerError:
    """What PyTorch says when it cannot map a file or allocate, with the number of bytes if it tells one."""
    size = path.stat().st_size
    asked = _ASKED_FOR.search(words)
    what = "more memory than is" if asked is None else f"{asked[1]} bytes of memory, which are not"
    message = (
        f"loading {path.name} ({size} bytes) asks for {what} to be had: raise the memory limit of the worker "
        "container, or copy the file again if it should not need so much"
    )
    actual = None if asked is None else f"{asked[1]} bytes asked for"
    return fail(Reason.OUT_OF_MEMORY, Phase.MAP, message, file=path.name, actual=actual)


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__

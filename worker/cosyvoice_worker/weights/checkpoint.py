"""Reads a checkpoint as tensors that are views into the mapped file: opening gigabytes takes milliseconds.

PyTorch's own format in both its forms (zip, and the one before it, which cannot be mapped and is copied) and
safetensors. Only tensors are read: no code from a file is ever run.
"""

from __future__ import annotations

import errno
import os
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail
from cosyvoice_worker.regular_files import open_regular
from cosyvoice_worker.staging.archive import flaw_of
from cosyvoice_worker.weights import pickles
from cosyvoice_worker.weights.pickles import problem_of

ACCEPTED_DTYPES = frozenset({torch.float32, torch.float16, torch.bfloat16})

_ZIP = b"PK\x03\x04"
# PyTorch's magic number as the pickle that its files began with before 1.6.
_BEFORE_ZIP = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
# That, its version, the machine's, the checkpoint and the names of its storages.
_PICKLES_BEFORE_ZIP = 5
_LFS_POINTER = b"version https://git-lfs"
_ASKED_FOR = re.compile(r"allocate (\d+) bytes")


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of the file by name, on the CPU wherever they were saved.

    Raises WorkerError: MissingFile; LFSPointer, TruncatedFile or CorruptFile for bytes that are no checkpoint;
    IncompatibleModel for entries that are no tensors, DtypeMismatch for tensors of no floating type.
    """
    try:
        with open_regular(path) as file:
            start = file.read(len(_LFS_POINTER))
        if start == _LFS_POINTER:
            message = f"{path.name} is a git-lfs pointer, not the file it stands for: fetch it with `git lfs pull`"
            raise fail(Reason.LFS_POINTER, Phase.MAP, message, file=path.name)
        content = _safetensors(path) if path.suffix == ".safetensors" else _pytorch(path, start)
    except FileNotFoundError:
        message = f"{path.name} is not in {path.parent}"
        raise fail(Reason.MISSING_FILE, Phase.MAP, message, file=path.name) from None
    except OSError as error:
        message = f"{path.name} cannot be read: {error.strerror}"
        raise fail(Reason.CORRUPT_FILE, Phase.MAP, message, file=path.name) from error
    return _tensors_only(path.name, content)


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except SafetensorError as error:
        raise _corrupt(path, Reason.CORRUPT_FILE, str(error)) from error


def _pytorch(path: Path, start: bytes) -> object:
    if start.startswith(_ZIP):
        flaw = flaw_of(path)
        if flaw is not None:
            reason = Reason.TRUNCATED_FILE if flaw.kind == "cut" else Reason.CORRUPT_FILE
            raise _corrupt(path, reason, f"it {flaw.what}".removesuffix(": copy it again"))
        _look_through(path, _zipped_pickle(path), pickles=1)
        return _load(path, mmap=True)
    if start.startswith(_BEFORE_ZIP):
        with open_regular(path) as file:
            _look_through(path, file.read(pickles.MAX_BYTES + 1), pickles=_PICKLES_BEFORE_ZIP)
        return _load(path, mmap=False)
    raise _corrupt(path, Reason.CORRUPT_FILE, f"it begins with {start[:8]!r}")


def _zipped_pickle(path: Path) -> bytes:
    """As PyTorch finds it; nothing where it finds none."""
    try:
        return bytes(torch._C.PyTorchFileReader(str(path)).get_record("data.pkl"))
    except RuntimeError:
        return b""


def _look_through(path: Path, pickled: bytes, *, pickles: int) -> None:
    problem = problem_of(pickled, pickles)
    if problem is not None:
        message = f"{path.name} is no plain checkpoint of tensors: {problem}"
        raise fail(Reason.INCOMPATIBLE_MODEL, Phase.MAP, message, file=path.name, expected="a dict of tensors")


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
    return {_name(file, name): _checked(file, name, value) for name, value in content.items()}


def _name(file: str, name: object) -> str:
    if not isinstance(name, str):
        kind = type(name).__name__
        message = f"{file} has an entry whose name is a {kind}, not a text"
        raise fail(Reason.INCOMPATIBLE_MODEL, Phase.MAP, message, file=file, expected="str", actual=kind)
    return name


def _checked(file: str, name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        message = f"{file}: the entry {name} is a {kind}, not a tensor; save the model's state dict alone"
        raise fail(
            Reason.INCOMPATIBLE_MODEL, Phase.MAP, message, file=file, tensor=name, expected="Tensor", actual=kind
        )
    if value.layout is not torch.strided or value.is_meta:
        kind = "a tensor without memory" if value.is_meta else str(value.layout).removeprefix("torch.")
        message = f"{file}: {name} is {kind}, expected a dense tensor"
        raise fail(
            Reason.INCOMPATIBLE_MODEL,
            Phase.MAP,
            message,
            file=file,
            tensor=name,
            expected="a dense tensor",
            actual=kind,
        )
    needed, held = value.numel() * value.element_size(), value.untyped_storage().nbytes()
    if needed > held:  # a view that repeats numbers: whoever computes with it may have to write it out
        message = f"{file}: {name} has the shape {list(value.shape)}, which is {needed} bytes, and holds {held}"
        raise fail(
            Reason.INCOMPATIBLE_MODEL,
            Phase.MAP,
            message,
            file=file,
            tensor=name,
            expected=f"{needed} bytes",
            actual=f"{held} bytes",
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
    if asked is not None and int(asked[1]) > size:
        # Nothing in a checkpoint is compressed.
        return _corrupt(path, Reason.CORRUPT_FILE, f"it claims {asked[1]} bytes in one piece")
    message = (
        f"loading {path.name} ({size} bytes) asks for more memory than is to be had: raise the memory limit of the "
        "worker container, or copy the file again if it should not need so much"
    )
    actual = None if asked is None else f"{asked[1]} bytes asked for"
    return fail(Reason.OUT_OF_MEMORY, Phase.MAP, message, file=path.name, actual=actual)


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__

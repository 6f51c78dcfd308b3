"""Model directories with something hostile in them, each made of a good one that is left as it is."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch

from cosyvoice_worker.faults.archive import rewrite

CLAIM = 2**60
PROOF = "proof"

Change = Callable[[Path], None]


def copy(good: Path, claim: Path) -> Path:
    """A copy of `good` in the folder `claim`; big files are links of the file system to the good ones."""
    return shutil.copytree(good, claim / "model", copy_function=_link)


def _link(source: str, target: str) -> None:
    if source.endswith(".pt"):
        os.link(source, target)
    else:
        shutil.copy(source, target)


class _Touch:
    """What a pickle makes of itself by calling a function."""

    def __init__(self, proof: str) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (self.proof, "w")


def replaced(name: str, content: bytes | str) -> Change:
    """Another content of one file."""

    def change(model: Path) -> None:
        path = model / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return change


def pickled_call(*, zipped: bool) -> Change:
    """A checkpoint that would leave a proof beside the model were its pickle obeyed."""

    def change(model: Path) -> None:
        path = model / "hift.pt"
        path.unlink()
        torch.save({"a": _Touch(str(model.parent / PROOF))}, path, _use_new_zipfile_serialization=zipped)

    return change


def pickled(instructions: bytes) -> Change:
    """A checkpoint whose pickle begins with these instructions."""

    def change(model: Path) -> None:
        good = model / "good"
        (model / "hift.pt").rename(good)
        rewrite(good, model / "hift.pt", instructions)
        good.unlink()

    return change


def keys(count: int) -> Change:
    """A checkpoint that is a dict of so many names, and no tensor."""
    names = (str(number).encode() for number in range(count))
    items = b"".join(pickle.BINUNICODE + struct.pack("<I", len(name)) + name + pickle.NONE for name in names)
    # What the good checkpoint builds is left below it on the stack.
    return pickled(pickle.EMPTY_DICT + pickle.MARK + items + pickle.SETITEMS + pickle.STOP)


def named(name: str) -> Change:
    """A checkpoint with something that is no tensor under this name."""
    text = name.encode("utf-8", "surrogatepass")
    key = pickle.BINUNICODE + struct.pack("<I", len(text)) + text
    return pickled(pickle.EMPTY_DICT + pickle.MARK + key + pickle.NONE + pickle.SETITEMS + pickle.STOP)


def piped(name: str) -> Change:
    """A named pipe, which nobody writes into, for one file."""

    def change(model: Path) -> None:
        (model / name).unlink()
        os.mkfifo(model / name)

    return change


def claiming_tensor(model: Path) -> None:
    """A checkpoint with a tensor of 2^60 numbers in a record of 16 bytes."""
    good = model / "good"
    (model / "hift.pt").unlink()
    torch.save({"a": torch.ones(4)}, good)
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(model / "hift.pt", "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("data.pkl"):
                content = content.replace(b"K\x04", b"\x8a\x08" + struct.pack("<q", CLAIM))
            target.writestr(name, content)
    good.unlink()


def bomb(model: Path) -> None:
    """A checkpoint of some megabytes that unpacks to more than the memory there is."""
    (model / "flow.pt").unlink()
    with zipfile.ZipFile(model / "flow.pt", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}, protocol=2))
        with archive.open("archive/data/0", "w", force_zip64=True) as record:
            for _ in range(1280):
                record.write(bytes(1 << 20))


def linked(name: str, target: str) -> Change:
    """One file as a symbolic link."""

    def change(model: Path) -> None:
        (model / name).unlink(missing_ok=True)
        (model / name).parent.mkdir(exist_ok=True)
        (model / name).symlink_to(target)

    return change


def hub_cache(model: Path) -> None:
    """All files as links to blobs beside the model, as a hub's cache has them."""
    blobs = model.parent / "blobs"
    blobs.mkdir()
    for number, path in enumerate(sorted(path for path in model.rglob("*") if path.is_file())):
        path.rename(blobs / str(number))
        path.symlink_to(os.path.relpath(blobs / str(number), path.parent))


def pack(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    """A safetensors file; `length` is what it says of its header's."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(begin: int, end: int) -> dict[str, object]:
    return {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels

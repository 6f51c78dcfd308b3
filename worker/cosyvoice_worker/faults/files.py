"""Faults that need no look at a tensor: most of them end the stager, before a worker has started."""

from __future__ import annotations

import os
import shutil
import zipfile

from cosyvoice_worker.faults.copy import Copy
from cosyvoice_worker.faults.fault import Damage
from cosyvoice_worker.outcome import Phase, Reason, fail
from cosyvoice_worker.staging.copy import sha256_of
from cosyvoice_worker.staging.manifest import Entry, Manifest
from cosyvoice_worker.staging.selection import SERVED_YAML, TEXT_MODEL

FLOW = "flow.pt"
HIFT = "hift.pt"
LLM = "llm.pt"

UNKNOWN_YAML = "cosyvoice9.yaml"
KNOWN_CLASS = "cosyvoice.llm.llm.Qwen2LM"
UNKNOWN_CLASS = "cosyvoice.llm.llm.CosyVoice9LM"

HUGE_FILE = f"{TEXT_MODEL}/huge.json"
HUGE_BYTES = 2**40

_LOCAL_HEADER_BYTES = 30  # APPNOTE.TXT 4.3.7: name and extra field follow, their lengths are its last four bytes


def truncate(copy: Copy) -> Damage:
    """An upload that broke off."""
    path = copy.own(FLOW)
    size = path.stat().st_size
    os.truncate(path, size // 2)
    return Damage(file=FLOW, what=f"cut off after {size // 2} of {size} bytes")


def flip_a_bit(copy: Copy) -> Damage:
    """The lowest bit of one weight: no shape, no size and no sound tells it, only the digest."""
    path = copy.own(FLOW)
    offset = _middle_of_the_largest_record(copy, FLOW)
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))
    return Damage(
        file=FLOW,
        what=f"bit 0 of byte {offset} flipped",
        needs=f"spec.source.digest {digest_of(copy)}, that of the good directory",
    )


def leave_an_lfs_pointer(copy: Copy) -> Damage:
    """A clone without `git lfs pull`."""
    sha256, size = sha256_of(copy.original(LLM).real)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
    copy.new(LLM).write_text(pointer, encoding="ascii")
    return Damage(file=LLM, what="replaced by its git-lfs pointer")


def leave_a_file_out(copy: Copy) -> Damage:
    """A directory that is not complete."""
    copy.new(HIFT)
    return Damage(file=HIFT, what="left out")


def leave_nothing(copy: Copy) -> Damage:
    """A claim that was emptied, or whose storage is not mounted: the directory is there, with nothing in it."""
    for path in copy.directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return Damage(file=".", what="emptied")


def rename_the_yaml(copy: Copy) -> Damage:
    """A model of another generation: the yaml's name tells it."""
    (copy.directory / SERVED_YAML).rename(copy.directory / UNKNOWN_YAML)
    return Damage(file=UNKNOWN_YAML, what=f"the new name of {SERVED_YAML}")


def name_an_unknown_class(copy: Copy) -> Damage:
    """The yaml of a later model under the name of this one's."""
    text = copy.original(SERVED_YAML).real.read_text(encoding="utf-8")
    if KNOWN_CLASS not in text:
        message = f"{SERVED_YAML} does not name {KNOWN_CLASS}: is it a good model?"
        raise fail(Reason.INCOMPATIBLE_MODEL, Phase.STAGE, message, file=SERVED_YAML, expected=KNOWN_CLASS)
    copy.new(SERVED_YAML).write_text(text.replace(KNOWN_CLASS, UNKNOWN_CLASS), encoding="utf-8")
    return Damage(file=SERVED_YAML, what=f"{KNOWN_CLASS} became {UNKNOWN_CLASS}")


def add_a_huge_file(copy: Copy) -> Damage:
    """A sparse file that takes no space on a disk, but more than any tmpfs has."""
    path = copy.new(HUGE_FILE)
    path.touch()
    os.truncate(path, HUGE_BYTES)
    return Damage(file=HUGE_FILE, what=f"added, {HUGE_BYTES} bytes, sparse: copy it with `rsync -S` or `tar -S` only")


def digest_of(copy: Copy) -> str:
    """What spec.source.digest of the good directory would be."""
    entries = []
    for file in copy.good:
        sha256, size = sha256_of(file.real)
        entries.append(Entry(path=file.path, size=size, sha256=sha256))
    return Manifest.of(entries).digest


def _middle_of_the_largest_record(copy: Copy, path: str) -> int:
    """The offset of the first byte of a weight: little-endian, so it holds the lowest bits of the fraction."""
    real = copy.original(path).real
    try:
        with zipfile.ZipFile(real) as archive:
            record = max(archive.infolist(), key=lambda member: member.file_size)
    except zipfile.BadZipFile as error:
        message = f"{path} is no zip archive, which PyTorch's checkpoints are since 1.6: is it a good model?"
        raise fail(Reason.CORRUPT_FILE, Phase.STAGE, message, file=path) from error
    with real.open("rb") as file:
        file.seek(record.header_offset)
        header = file.read(_LOCAL_HEADER_BYTES)
    name, extra = int.from_bytes(header[-4:-2], "little"), int.from_bytes(header[-2:], "little")
    middle = record.file_size // 2 // 8 * 8  # a whole number of weights, whatever their type
    return record.header_offset + _LOCAL_HEADER_BYTES + name + extra + middle

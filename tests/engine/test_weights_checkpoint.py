"""Reading checkpoints: what is accepted, what is refused, and in which words."""

from __future__ import annotations

import collections
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from cosyvoice_worker.outcome import Outcome, Reason, WorkerError
from cosyvoice_worker.weights import checkpoint, memory

STATE = {"a.weight": torch.arange(6.0).reshape(2, 3), "b": torch.ones(4, dtype=torch.bfloat16)}


class NotATensor:
    """Something a checkpoint must not be able to bring to life."""


def written(path: Path, content: Any = STATE, **options: Any) -> Path:
    torch.save(content, path, **options)
    return path


def saved_on_cuda(path: Path) -> Path:
    """The same file, its storages marked as having been on a GPU, as a training that never moved them writes it."""
    on_cpu = written(path.with_suffix(".cpu"))
    with zipfile.ZipFile(on_cpu) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("data.pkl"):
                data = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
                assert b"cuda:0" in data
            target.writestr(name, data)
    return path


def outcome_of(path: Path) -> Outcome:
    with pytest.raises(WorkerError) as raised:
        checkpoint.read(path)
    return raised.value.outcome


@pytest.mark.parametrize(
    "write",
    [
        written,
        saved_on_cuda,
        lambda path: written(path, _use_new_zipfile_serialization=False),
        lambda path: written(path, collections.OrderedDict(STATE)),
    ],
    ids=["zip", "saved on a GPU", "before zip", "OrderedDict"],
)
def test_a_checkpoint_gives_its_tensors_on_the_cpu(write: Callable[[Path], Path], tmp_path: Path) -> None:
    tensors = checkpoint.read(write(tmp_path / "llm.pt"))

    assert list(tensors) == list(STATE)
    for name, expected in STATE.items():
        assert tensors[name].device.type == "cpu"
        assert torch.equal(tensors[name], expected)
        assert tensors[name].dtype == expected.dtype


def test_safetensors_are_read_too(tmp_path: Path) -> None:
    save_file(STATE, tmp_path / "llm.safetensors")

    tensors = checkpoint.read(tmp_path / "llm.safetensors")

    assert tensors.keys() == STATE.keys()
    assert all(torch.equal(tensors[name], STATE[name]) for name in STATE)


@pytest.mark.parametrize("name", ["llm.pt", "llm.safetensors"])
def test_tensors_are_views_into_the_mapped_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if path.suffix == ".pt":
        written(path)
    else:
        save_file(STATE, path)

    tensors = checkpoint.read(path)

    mappings = memory.mappings_of([path])
    for tensor in tensors.values():
        assert any(m.start <= tensor.data_ptr() < m.start + m.size for m in mappings)


def truncated(path: Path) -> Path:
    written(path)
    path.write_bytes(path.read_bytes()[:-100])
    return path


def truncated_before_zip(path: Path) -> Path:
    written(path, _use_new_zipfile_serialization=False)
    path.write_bytes(path.read_bytes()[:-8])
    return path


def damaged_directory(path: Path) -> Path:
    written(path)
    content = bytearray(path.read_bytes())
    content[content.rfind(b"PK\x01\x02") + 20] ^= 0xFF
    path.write_bytes(content)
    return path


def bytes_of(content: bytes) -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize(
    ("write", "reason", "message"),
    [
        (
            truncated,
            Reason.TRUNCATED_FILE,
            "llm.pt (* bytes) is damaged: it ends before its zip directory",
        ),
        (truncated_before_zip, Reason.CORRUPT_FILE, "llm.pt (* bytes) is damaged: *"),
        (damaged_directory, Reason.CORRUPT_FILE, "llm.pt (* bytes) is damaged: *"),
        (bytes_of(b""), Reason.CORRUPT_FILE, "llm.pt (0 bytes) is damaged: it begins with b''"),
        (bytes_of(b"<html>not found"), Reason.CORRUPT_FILE, "llm.pt (15 bytes) is damaged: it begins with b'<html>no'"),
        (
            bytes_of(b"\x80\x02garbage"),
            Reason.CORRUPT_FILE,
            "llm.pt (9 bytes) is damaged: it begins with b'\\x80\\x02garbag'",
        ),
        (
            bytes_of(b"version https://git-lfs.github.com/spec/v1\n"),
            Reason.LFS_POINTER,
            "llm.pt is a git-lfs pointer, not the file it stands for: fetch it with `git lfs pull`",
        ),
    ],
    ids=["truncated", "truncated, before zip", "damaged", "empty", "a web page", "garbage", "git-lfs pointer"],
)
def test_damaged_bytes_are_exit_code_65(
    write: Callable[[Path], Path], reason: Reason, message: str, tmp_path: Path
) -> None:
    outcome = outcome_of(write(tmp_path / "llm.pt"))

    assert (outcome.exit_code, outcome.reason, outcome.file) == (65, reason, "llm.pt")
    before, _, after = message.partition("*")
    assert outcome.message.startswith(before)
    assert after.partition("*")[0] in outcome.message


@pytest.mark.parametrize("content", [b"", b"\x10\x00\x00\x00\x00\x00\x00\x00{not json", b"\xff" * 64])
def test_damaged_safetensors_are_exit_code_65(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "llm.safetensors"
    path.write_bytes(content)

    outcome = outcome_of(path)

    assert (outcome.exit_code, outcome.reason) == (65, Reason.CORRUPT_FILE)


@pytest.mark.parametrize(
    ("content", "reason", "tensor", "message"),
    [
        (
            STATE | {"epoch": 3},
            Reason.INCOMPATIBLE_MODEL,
            "epoch",
            "llm.pt: the entry epoch is a int, not a tensor; save the model's state dict alone",
        ),
        (
            {"state_dict": dict(STATE)},
            Reason.INCOMPATIBLE_MODEL,
            "state_dict",
            "llm.pt: the entry state_dict is a dict, not a tensor; save the model's state dict alone",
        ),
        ([torch.ones(1)], Reason.INCOMPATIBLE_MODEL, None, "llm.pt holds a list, not a dict of tensors"),
        (
            {"a": torch.ones(1, dtype=torch.int8)},
            Reason.DTYPE_MISMATCH,
            "a",
            "llm.pt: a is int8, expected bfloat16 or float16 or float32",
        ),
        (
            {3: torch.ones(1)},
            Reason.INCOMPATIBLE_MODEL,
            None,
            "llm.pt has an entry whose name is a int, not a text",
        ),
        (
            {"a": torch.empty(1, device="meta")},
            Reason.INCOMPATIBLE_MODEL,
            "a",
            "llm.pt: a is a tensor without memory, expected a dense tensor",
        ),
        (
            {"a": torch.ones(1).expand(10**6, 10**6)},
            Reason.INCOMPATIBLE_MODEL,
            "a",
            "llm.pt: a has the shape [1000000, 1000000], which is 4000000000000 bytes, and holds 4",
        ),
        (
            {"a": torch.ones(1, dtype=torch.float64)},
            Reason.DTYPE_MISMATCH,
            "a",
            "llm.pt: a is float64, expected bfloat16 or float16 or float32",
        ),
    ],
    ids=["a number", "nested", "a list", "quantised", "no name", "empty", "repeated", "double"],
)
def test_what_is_no_dict_of_float_tensors_is_exit_code_66(
    content: Any, reason: Reason, tensor: str | None, message: str, tmp_path: Path
) -> None:
    outcome = outcome_of(written(tmp_path / "llm.pt", content))

    assert (outcome.exit_code, outcome.reason, outcome.file, outcome.tensor) == (66, reason, "llm.pt", tensor)
    assert outcome.message == message


@pytest.mark.filterwarnings("ignore:.*[Ss]parse")
def test_a_sparse_tensor_is_refused(tmp_path: Path) -> None:
    outcome = outcome_of(written(tmp_path / "llm.pt", {"a": torch.eye(2).to_sparse()}))

    assert (outcome.reason, outcome.tensor) == (Reason.INCOMPATIBLE_MODEL, "a")
    assert outcome.message == "llm.pt: a is sparse_coo, expected a dense tensor"


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "before zip"])
def test_code_in_a_checkpoint_is_refused_and_not_run(options: dict[str, Any], tmp_path: Path) -> None:
    outcome = outcome_of(written(tmp_path / "llm.pt", {"a": NotATensor()}, **options))

    assert (outcome.exit_code, outcome.reason) == (66, Reason.INCOMPATIBLE_MODEL)
    assert outcome.message.startswith("llm.pt is no plain checkpoint of tensors: Weights only load failed")


@pytest.mark.parametrize("kind", ["a directory", "a named pipe"])
def test_what_is_no_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "llm.pt"
    path.mkdir() if kind == "a directory" else os.mkfifo(path)

    outcome = outcome_of(path)

    assert (outcome.exit_code, outcome.reason) == (65, Reason.CORRUPT_FILE)
    assert outcome.message.startswith("llm.pt cannot be read: ")


def test_a_record_that_claims_more_than_the_file_has_is_damage_and_nothing_is_made_for_it(tmp_path: Path) -> None:
    content = bytearray(written(tmp_path / "llm.pt").read_bytes())
    entry = content.index(b"PK\x01\x02")
    assert content[entry + 46 :].startswith(b"llm/data.pkl")
    content[entry + 24 : entry + 28] = (2**31).to_bytes(4, "little")
    (tmp_path / "llm.pt").write_bytes(content)

    outcome = outcome_of(tmp_path / "llm.pt")

    assert (outcome.exit_code, outcome.reason) == (65, Reason.CORRUPT_FILE)
    assert "whose records do not have the sizes that it tells ('llm/data.pkl')" in outcome.message


def test_before_zip_too_a_claim_beyond_the_file_is_damage_and_no_want_of_memory(tmp_path: Path) -> None:
    path = written(tmp_path / "llm.pt", {"a": torch.ones(4)}, _use_new_zipfile_serialization=False)
    claim = b"\x8a\x06" + (2**46).to_bytes(6, "little")
    path.write_bytes(path.read_bytes().replace(b"K\x04N", claim + b"N"))

    outcome = outcome_of(path)

    assert (outcome.exit_code, outcome.reason) == (65, Reason.CORRUPT_FILE)
    assert f"it claims {2**48} bytes in one piece" in outcome.message


def test_a_missing_file_is_exit_code_66(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path / "llm.pt")

    assert (outcome.exit_code, outcome.reason) == (66, Reason.MISSING_FILE)
    assert outcome.message == f"llm.pt is not in {tmp_path}"


def test_shared_storage_stays_shared(tmp_path: Path) -> None:
    whole: Tensor = torch.arange(8.0)

    tensors = checkpoint.read(written(tmp_path / "llm.pt", {"whole": whole, "alias": whole}))

    assert tensors["whole"].data_ptr() == tensors["alias"].data_ptr()


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x02X\x05",  # a length that is not all there
        b"\x80\x02}]}s.",  # a list as a key
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\x00)R.",  # a tensor of nothing
        b"\x80\x02K\x01Q.",  # a storage that is a number
    ],
)
def test_a_pickle_that_torch_stumbles_over_is_refused(tmp_path: Path, pickled: bytes) -> None:
    path = tmp_path / "llm.pt"
    with zipfile.ZipFile(written(tmp_path / "good.pt")) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            target.writestr(name, pickled if name.endswith("data.pkl") else source.read(name))

    with pytest.raises(WorkerError) as raised:
        checkpoint.read(path)

    # Which of them is a matter of torch's release.
    assert raised.value.outcome.reason in {Reason.CORRUPT_FILE, Reason.INCOMPATIBLE_MODEL}
    assert raised.value.outcome.file == "llm.pt"


def test_an_archive_that_claims_further_disks_has_lost_its_end(tmp_path: Path) -> None:
    content = bytearray(written(tmp_path / "llm.pt").read_bytes())
    locator = content.index(b"PK\x06\x07")
    content[locator + 16 : locator + 20] = (7).to_bytes(4, "little")
    (tmp_path / "llm.pt").write_bytes(content)

    with pytest.raises(WorkerError) as raised:
        checkpoint.read(tmp_path / "llm.pt")

    assert raised.value.outcome.reason is Reason.TRUNCATED_FILE

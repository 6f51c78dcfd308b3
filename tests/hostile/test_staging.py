"""`cosyvoice-worker stage` over hostile claims: what is in them, how it ends, and what it says.

It runs as in a pod: the claim is /source, and links may lead anywhere in it and nowhere else.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.engine_process import model_json
from tests.hostile import command, models
from tests.hostile.models import Change, linked, nested, pack, replaced, tensor

MODEL = Path("/source/model")
PACK = "voices/ann.safetensors"
OUT = "is a symbolic link to {}, outside of the source /source: copy the file into the source"


def unchanged(_model: Path) -> None:
    """Nothing: the good model."""


CLAIMS: dict[str, tuple[Change, int, str]] = {
    "a good model": (unchanged, 0, "9 files of pvc://voices/model staged"),
    "a hub's cache, all links to blobs": (models.hub_cache, 0, "9 files of pvc://voices/model staged"),
    "a link to an absolute path": (linked("llm.pt", "/etc/passwd"), 77, "llm.pt " + OUT.format("/etc/passwd")),
    "a link up and out": (linked("flow.pt", "../../../etc/passwd"), 77, "flow.pt " + OUT.format("/etc/passwd")),
    "a voice that is a link out": (linked(PACK, "/etc/passwd"), 77, PACK + " " + OUT.format("/etc/passwd")),
    "a link to a device": (linked("hift.pt", "/dev/zero"), 77, "hift.pt " + OUT.format("/dev/zero")),
    "a link to what is no text": (
        linked("llm.pt", "/\udcff\x1b[2J"),
        66,
        "llm.pt is a symbolic link to /\\udcff\\x1b[2J, which does not exist",
    ),
    "a zip bomb": (models.bomb, 65, "flow.pt is a zip archive with compressed records ('archive/data.pkl'), not what"),
    "a header of 2^60 bytes": (replaced(PACK, pack({}, length=2**60)), 65, PACK + " is no safetensors file"),
    "a tensor of 2^60 bytes": (replaced(PACK, pack({"a": tensor(0, 2**60)})), 65, PACK + " is cut off, copy it again"),
    "10^6 keys": (
        replaced(PACK, pack({str(number): tensor(0, 0) for number in range(10**6)})),
        65,
        PACK + " is no safetensors file",
    ),
    "a header nested without end": (
        replaced(PACK, pack(b'{"a":' * 50_000)),
        65,
        PACK + " has a safetensors header that cannot be read",
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_staged_or_refused(name: str, good: Path, tmp_path: Path, folder: Path) -> None:
    change, code, words = CLAIMS[name]
    claim = tmp_path / "claim"
    change(models.copy(good, claim))

    ended = command.stage(json.dumps(model_json(MODEL)).encode(), claim, folder)

    assert ended.code == code, ended.said
    assert ended.said.startswith(words)


def document(**changes: object) -> bytes:
    return json.dumps(model_json(MODEL) | changes).encode()


SOURCE = {"uri": "pvc://voices/model", "digest": None}
DOCUMENTS: dict[str, tuple[bytes, int, str]] = {
    "a path up and out": (
        document(source={**SOURCE, "path": "/source/../etc"}),
        77,
        "/source/../etc leads to /etc, outside of the source /source: copy the model into the source",
    ),
    "a revision that is a path": (
        document(revision="../../x"),
        64,
        "{config}: revision: expected `str` matching regex '^[a-z0-9]{1,63}\\\\Z'",
    ),
    "nested without end": (nested(10**6).encode(), 64, "{config} is not JSON: maximum recursion depth exceeded"),
    "a number of 10^6 digits": (b"9" * 10**6, 64, "{config} is not JSON: Integer value out of range"),
    "10^6 keys": (document(**{str(number): 1 for number in range(10**6)}), 64, "{config}: 0: unknown field (known: "),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_configuration_is_refused(name: str, good: Path, tmp_path: Path, folder: Path) -> None:
    content, code, words = DOCUMENTS[name]
    models.copy(good, tmp_path / "claim")

    ended = command.stage(content, tmp_path / "claim", folder)

    assert ended.code == code, ended.said
    assert ended.said.startswith(words.replace("{config}", str(folder / "model.json")))

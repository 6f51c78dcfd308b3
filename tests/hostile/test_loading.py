"""`cosyvoice-worker synthesize` with hostile models: what only the loader reads, how it ends, and what it says."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from tests.hostile import command, models
from tests.hostile.models import Change, nested, pickled, pickled_call, replaced

YAML = "cosyvoice2.yaml"
CONFIG, VOCABULARY, MERGES, ADDED = (
    f"CosyVoice-BlankEN/{name}" for name in ("config.json", "vocab.json", "merges.txt", "tokenizer_config.json")
)
TOO_DEEP = "maximum recursion depth exceeded"
# (0, 1), 1: (1, 1), 2: ((1, 1), (1, 1)) … and the last of these as a key.
KEY_OF_2_TO_40 = b"K\x00K\x01q\x00" + b"".join(b"K\x00h%ch%c\x86q%c" % (n, n, n + 1) for n in range(40)) + b"h\x28Nu."
ARRAY_OF_2_TO_60 = b"cbuiltins\nbytearray\n\x8a\x09" + (2**60).to_bytes(9, "little") + b"\x85R"


def power(model: Path) -> None:
    path = model / YAML
    path.write_text(path.read_text().replace("sample_rate: 24000", "sample_rate: !ref 9**9**9**9"))


MODELS: dict[str, tuple[Change, int, str]] = {
    "a pickle with a call": (
        pickled_call(zipped=True),
        66,
        "hift.pt is no plain checkpoint of tensors: Weights only load failed",
    ),
    "a pickle with a call, before zip": (
        pickled_call(zipped=False),
        66,
        "hift.pt is no plain checkpoint of tensors: Weights only load failed",
    ),
    "an array of 2^60 bytes": (
        pickled(ARRAY_OF_2_TO_60),
        71,
        "loading hift.pt (* bytes) asks for more memory than is to be had",
    ),
    "a tensor of 2^60 numbers": (models.claiming_tensor, 65, "hift.pt (* bytes) is damaged: "),
    "10^6 keys": (models.keys(10**6), 66, "hift.pt: the entry 0 is a NoneType, not a tensor"),
    "20 MB of a name": (
        models.named("n" * 20_000_000),
        66,
        "hift.pt is no plain checkpoint of tensors: its instructions are more than 16777216 bytes",
    ),
    "a key that takes 2^40 steps": (
        pickled(pickle.EMPTY_DICT + pickle.MARK + KEY_OF_2_TO_40),
        66,
        "hift.pt is no plain checkpoint of tensors: it takes tuples up again more than 16 times",
    ),
    "a name of 10^6 half characters": (
        models.named("\udcff" * 10**6),
        66,
        "hift.pt: the entry \\udcff\\udcff",
    ),
    "a checkpoint that is a pipe": (models.piped("llm.pt"), 65, "llm.pt cannot be read: not a regular file"),
    "yaml with a Python tag": (
        replaced(YAML, "a: !!python/object/apply:os.system [id]"),
        66,
        "cosyvoice2.yaml cannot be read: not YAML: could not determine a constructor for the tag",
    ),
    "yaml that grows by aliases": (
        replaced(YAML, "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 32))),
        66,
        "cosyvoice2.yaml cannot be read: not YAML: too large, with its aliases written out: more than 524288",
    ),
    "yaml with arithmetic without end": (power, 66, "cosyvoice2.yaml: sample_rate should be a value that can be"),
    "yaml nested without end": (
        replaced(YAML, "a: " + nested(10_000)),
        66,
        "cosyvoice2.yaml cannot be read: not YAML: nested more than 64 levels deep",
    ),
    "yaml of 10^6 keys": (
        replaced(YAML, "".join(f"k{number}: 1\n" for number in range(10**6))),
        66,
        "cosyvoice2.yaml cannot be read: more than 262144 bytes",
    ),
    "a configuration nested without end": (replaced(CONFIG, nested(10**6)), 66, f"{CONFIG} cannot be read: {TOO_DEEP}"),
    "a vocabulary nested without end": (
        replaced(VOCABULARY, nested(10**6)),
        66,
        f"the tokenizer's vocab.json cannot be used: it is not JSON: {TOO_DEEP}",
    ),
    "a vocabulary of 10^6 keys": (
        replaced(VOCABULARY, json.dumps({str(number): number for number in range(10**6)})),
        66,
        "the tokenizer's merges.txt cannot be used: line 2 joins no two symbols of vocab.json",
    ),
    "a vocabulary without end": (
        models.linked(VOCABULARY, "/dev/zero"),
        66,
        "the tokenizer's vocab.json cannot be used: it cannot be read: [Errno 22] not a regular file",
    ),
    "merges of one long line": (
        replaced(MERGES, "a " * 10**6),
        66,
        "the tokenizer's merges.txt cannot be used: line 1 joins no two symbols of vocab.json",
    ),
    "added tokens nested without end": (
        replaced(ADDED, '{"added_tokens_decoder": ' + nested(10**6) + "}"),
        66,
        f"the tokenizer's tokenizer_config.json cannot be used: it is not JSON: {TOO_DEEP}",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_refused(name: str, good: Path, tmp_path: Path, folder: Path) -> None:
    change, code, words = MODELS[name]
    model = models.copy(good, tmp_path / "claim")
    change(model)

    ended = command.synthesize(model, folder)

    assert ended.code == code, ended.said
    before, _, after = words.partition("*")
    assert ended.said.startswith(before)
    assert after in ended.said
    assert not (model.parent / models.PROOF).exists()


def test_the_good_model_speaks_within_the_same_bounds(good: Path, folder: Path) -> None:
    ended = command.synthesize(good, folder)

    assert ended.code == 0, ended.said
    assert (folder / "out.wav").stat().st_size > 10_000

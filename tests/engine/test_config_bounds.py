"""A configuration cannot be made to grow, to take for ever, or to end the loader otherwise than by a refusal."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from cosyvoice_worker.models.cosyvoice2 import config
from cosyvoice_worker.outcome import MAX_CHARACTERS, Outcome, Reason, WorkerError
from dev.models.tiny import RECIPE

YAML, BACKBONE = "cosyvoice2.yaml", "CosyVoice-BlankEN/config.json"
TOO_LARGE = "not YAML: too large, with its aliases written out"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Only the configuration of the tiny model."""
    shutil.copytree(RECIPE / "side", tmp_path, dirs_exist_ok=True)
    return tmp_path


def outcome_of(directory: Path) -> Outcome:
    with pytest.raises(WorkerError) as raised:
        config.read(directory)
    outcome = raised.value.outcome
    assert (outcome.exit_code, outcome.reason) == (66, Reason.INCOMPATIBLE_MODEL)
    assert len(outcome.message) <= MAX_CHARACTERS + len("...")
    return outcome


def chain(line: str, last: str, count: int = 40) -> str:
    """Lines of which each stands for two of the next."""
    return "".join(line.format(this=f"x{n}", next=f"x{n + 1}") for n in range(count)) + f"x{count}: {last}\n"


def laughs(line: str, count: int = 22) -> str:
    return "x0: &x0 {a: b}\n" + "".join(line.format(this=f"x{n}", last=f"x{n - 1}") for n in range(1, count))


def sampled_at(value: str) -> str:
    """The good configuration with another sample rate."""
    return (RECIPE / "side" / YAML).read_text(encoding="utf-8").replace("sample_rate: 24000", f"sample_rate: {value}")


CASES = {
    "references that double": (
        chain("{this}: !ref <{next}> + <{next}>\n", "1") + sampled_at("!ref <x0>"),
        "more than 1000 references in one value",
    ),
    "squares": (
        chain("{this}: !ref <{next}> * <{next}>\n", "9999999999") + sampled_at("!ref <x0>"),
        "a number beyond 2^53",
    ),
    "a long expression": (sampled_at('!ref "' + "1+" * 50_000 + '1"'), "an expression of 100001 characters"),
    "aliases that triple": (laughs("{this}: &{this} [*{last}, *{last}, *{last}]\n") + sampled_at("*x21"), TOO_LARGE),
    "merges that triple": (laughs("{this}: &{this}\n  <<: [*{last}, *{last}, *{last}]\n") + sampled_at("1"), TOO_LARGE),
    "a long text repeated": (f"x: &x {'a' * 99_000}\ny: [*x, *x, *x, *x, *x, *x]\n" + sampled_at("1"), TOO_LARGE),
    "an alias of itself": (sampled_at("&x [*x]"), "an alias stands inside of what it stands for"),
    "10^5 small nodes": ("x: [" + "a," * 100_000 + "]\n" + sampled_at("1"), TOO_LARGE),
    "a hexadecimal number": (sampled_at("0x" + "f" * 100_000), "a number of 100002 characters"),
    "a number to the base 60": (sampled_at(":".join("1" * 100_000)), "a number of 199999 characters"),
    "a fraction to the base 60": (sampled_at(":".join("1" * 100_000) + ".5"), "a number of 200001 characters"),
    "a number of 40 digits": (sampled_at("9" * 40), "sample_rate should be a whole number, but is 99"),
    "a truth that is none": (sampled_at("!!bool maybe"), "not YAML: 'maybe'"),
    "a number that is none": (sampled_at('!!int ""'), "not YAML: string index out of range"),
    "a date that is none": (sampled_at("!!timestamp never"), "not YAML: "),
    "a key that cannot be one": ("? !x [1]\n: 2\n" + sampled_at("1"), "not YAML: unhashable type"),
    "half a character": (sampled_at('"\\ud800"'), "sample_rate should be a whole number, but is '\\ud800'"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_yaml_is_refused(name: str, directory: Path) -> None:
    text, words = CASES[name]
    (directory / YAML).write_text(text, encoding="utf-8")

    outcome = outcome_of(directory)

    assert outcome.file == YAML
    assert words in outcome.message


@pytest.mark.parametrize("name", ["num_attention_heads", "rms_norm_eps"])
def test_a_number_of_400_digits_in_the_backbone_s_configuration_is_refused(name: str, directory: Path) -> None:
    path = directory / BACKBONE
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {name: 10**400}), encoding="utf-8")

    outcome = outcome_of(directory)

    assert outcome.message.startswith(f"{BACKBONE}: {name} should be a ")
    assert outcome.message.endswith("000…")


@pytest.mark.parametrize("name", [YAML, BACKBONE])
def test_what_is_no_file_is_not_waited_for(name: str, directory: Path) -> None:
    (directory / name).unlink()
    os.mkfifo(directory / name)

    assert (
        outcome_of(directory).message == f"{name} cannot be read: [Errno 22] not a regular file: '{directory / name}'"
    )

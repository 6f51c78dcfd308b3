"""Live documents: what is read of them, and how one is held to what was staged first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cosyvoice_operator import live
from cosyvoice_operator.manifests.config import model_config
from cosyvoice_operator.observed import Live
from cosyvoice_operator.revision import resolve
from tests.unit.operator.builders import POLICY, model

DIGEST = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32


def config(revision: str = "r1", digest: str | None = None) -> str:
    """A revision's model.json as its ConfigMap has it."""
    asked = model(source={"uri": "pvc://voices/model", **({"digest": digest} if digest else {})})
    return json.dumps(model_config(asked.identity, revision, resolve(asked.spec, POLICY)), indent=2)


def test_what_the_pods_load_and_what_one_tries_are_read() -> None:
    data = {"current.json": config("r1", DIGEST), "candidate.json": config("r2")}

    assert live.parse("r0", data) == Live(template="r0", current="r1", candidate="r2", pins={"r1": DIGEST})


def test_there_need_be_no_candidate() -> None:
    assert live.parse("r0", {"current.json": config("r1")}) == Live(template="r0", current="r1")


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", "7", '{"revision": 7, "source": {}}', '{"revision": "r1"}', "[" * 100_000]
)
def test_a_current_document_that_cannot_be_read_makes_it_none(text: str) -> None:
    assert live.parse("r0", {"current.json": text}) is None
    assert live.parse("r0", {"current.json": config("r1"), "candidate.json": text}) == Live(template="r0", current="r1")


def test_a_document_is_the_revisions_own_to_the_letter_until_it_is_held_to_a_digest() -> None:
    assert live.document(config("r1"), None) == config("r1")

    pinned = json.loads(live.document(config("r1"), DIGEST) or "")

    expected: dict[str, Any] = json.loads(config("r1"))
    expected["source"]["digest"] = DIGEST
    assert pinned == expected


def test_the_digest_that_the_user_named_stays() -> None:
    assert live.document(config("r1", OTHER), DIGEST) == config("r1", OTHER)
    assert live.pin_of(config("r1", OTHER)) == OTHER
    assert live.pin_of(config("r1")) is None


def test_nothing_is_made_of_a_configuration_that_cannot_be_read() -> None:
    assert live.document("{", DIGEST) is None
    assert live.pin_of("{") is None

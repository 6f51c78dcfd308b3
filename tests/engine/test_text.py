"""Text to pieces and ids, held to recorded results of the original."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_worker.models.cosyvoice2.config import TOKENIZER_DIR
from cosyvoice_worker.text.frontend import LONG, LONG_ENOUGH, split
from cosyvoice_worker.text.normalization import normalize
from cosyvoice_worker.text.tokenizer import Tokenizer

RECORDED = json.loads((Path(__file__).parent / "goldens" / "text.json").read_text(encoding="utf-8"))
SENTENCES = [pytest.param(sentence, id=sentence["text"][:20]) for sentence in RECORDED["sentences"]]


class Characters:
    """An encoder with an id a character."""

    def encode(self, text: str) -> list[int]:
        return [ord(character) for character in text]


@pytest.fixture(scope="module")
def tokenizer(tiny_model_dir: Path) -> Tokenizer:
    return Tokenizer.from_directory(tiny_model_dir / TOKENIZER_DIR)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_text_is_split_as_recorded(sentence: dict[str, Any], tokenizer: Tokenizer) -> None:
    assert split(sentence["text"], tokenizer) == sentence["none_split"]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_text_is_normalised_as_recorded(sentence: dict[str, Any]) -> None:
    assert normalize(sentence["text"]) == sentence["none_whole"]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_text_has_the_recorded_ids(sentence: dict[str, Any], tokenizer: Tokenizer) -> None:
    assert tokenizer.encode(sentence["text"]) == sentence["ids_of_raw_text"]
    assert [tokenizer.encode(piece) for piece in sentence["none_split"]] == sentence["ids_of_none_split"]


@pytest.mark.parametrize(("token", "id_"), RECORDED["special_tokens"].items())
def test_an_added_token_has_the_recorded_id(token: str, id_: int, tokenizer: Tokenizer) -> None:
    assert tokenizer.id_of(token) == id_
    assert tokenizer.encode(f"a{token}b")[1:-1] == [id_]


def test_there_are_as_many_ids_as_recorded(tokenizer: Tokenizer) -> None:
    assert tokenizer.size == RECORDED["len"]


@pytest.mark.parametrize("text", ["", "   ", "\n", "!!!", "。。。", "…", "“”", "$ € +"])
def test_where_nothing_can_be_read_there_is_no_piece(text: str, tokenizer: Tokenizer) -> None:
    assert split(text, tokenizer) == []


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a..b", ["a.b."]),
        ("Wait... what", ["Wait. what."]),
        ('"Go!" he said', ['"Go!" he said.']),
        ('Go..."', ['Go."']),
        ('."Go', ["Go."]),
        ("one, two", ["one, two."]),
        ("中文.", ["中文。"]),
        ("7 of 9", ["seven of nine."]),
        ("area 51m²", ["area fifty-onem²."]),
        ("你 好", ["你好。"]),
    ],
)
def test_end_marks_quotes_and_numbers(text: str, pieces: list[str], tokenizer: Tokenizer) -> None:
    assert split(text, tokenizer) == pieces


def test_a_number_too_long_for_words_is_read_digit_by_digit() -> None:
    assert normalize("1" * 40) == " ".join(["one"] * 40)


def test_a_short_last_piece_joins_the_one_before_it() -> None:
    text = "a" * 70 + "." + "b" * 70 + "." + "c" * 5 + "."

    assert [len(piece) for piece in split(text, Characters())] == [71, 77]


@given(st.text(st.characters(codec="utf-8"), max_size=400))
def test_any_text_can_be_split(text: str) -> None:
    pieces = split(text, Characters())

    assert all(pieces)


@given(st.lists(st.text("abc ,", min_size=1, max_size=40), max_size=12).map(".".join))
def test_pieces_hold_everything_that_is_said_and_none_grows_without_need(text: str) -> None:
    pieces = split(text, Characters())

    said = [character for character in "".join(pieces) if character.isalpha()]
    assert said == [character for character in text if character.isalpha()]
    longest_sentence = 41
    assert all(len(piece) <= LONG_ENOUGH + longest_sentence + LONG for piece in pieces)

"""From a text to the pieces that are spoken one by one: sentences, joined until they are worth a run of their own."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cosyvoice_worker.text.normalization import is_chinese, is_tagged, normalize

__all__ = ["Encoder", "normalize", "split"]

# Lengths: characters in Chinese, tokens in other languages.
LONG = 80  # a piece should not grow beyond this
LONG_ENOUGH = 60  # a piece of this length may stand alone when the next sentence does not fit
SHORT = 20  # a last piece below this joins the one before it

_CLOSING_QUOTES = ('"', "”")


class Encoder(Protocol):
    """Text to ids; here only their number matters."""

    def encode(self, text: str) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class _Language:
    ends: str
    default_end: str


_CHINESE = _Language(ends="。？！；：、.?!;", default_end="。")
_OTHER = _Language(ends=".?!;:", default_end=".")


def split(text: str, encoder: Encoder) -> list[str]:
    """The normalised pieces of `text`, without those that are only punctuation; none where nothing is left.

    A text with control tags is one piece, as it is.
    """
    if is_tagged(text):
        return [text]
    text = normalize(text)
    if not text:
        return []
    if is_chinese(text):
        pieces = _join(_sentences(text, _CHINESE), len)
    else:
        pieces = _join(_sentences(text, _OTHER), lambda piece: len(encoder.encode(piece)))
    return [piece for piece in pieces if not _is_punctuation(piece)]


def _sentences(text: str, language: _Language) -> list[str]:
    """Cut after each end mark, and after a closing quote behind it; an end mark with nothing before it is dropped."""
    if text[-1] not in language.ends:
        text += language.default_end
    sentences: list[str] = []
    start = 0
    for position, character in enumerate(text):
        if character not in language.ends:
            continue
        if position > start:
            sentences.append(text[start : position + 1])
        start = position + 1
        if text[start : start + 1] in _CLOSING_QUOTES:
            if sentences:
                sentences[-1] += text[start]
            start += 1
    return sentences


def _join(sentences: list[str], length: Callable[[str], int]) -> list[str]:
    pieces: list[str] = []
    current = ""
    for sentence in sentences:
        if length(current + sentence) > LONG and length(current) > LONG_ENOUGH:
            pieces.append(current)
            current = ""
        current += sentence
    if current and pieces and length(current) < SHORT:
        pieces[-1] += current
    elif current:
        pieces.append(current)
    return pieces


def _is_punctuation(text: str) -> bool:
    """Whether the text is only punctuation, symbols and blanks (Unicode's P, S and Z)."""
    return all(character.isspace() or unicodedata.category(character)[0] in "PSZ" for character in text)

"""What is written becomes what can be read aloud, by the rules the model was published with.

Without a language-specific normaliser these are few: Chinese keeps its digits, English spells them out.
"""

from __future__ import annotations

import re

from cosyvoice_worker.text.numerals import spell_out

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
# A blank is kept only between two ASCII characters that are no blanks; elsewhere Chinese has none.
_LOOSE_BLANK = re.compile(r"(?<![\x00-\x1f\x21-\x7f]) | (?![\x00-\x1f\x21-\x7f])")
_COMMAS = "，,、"
# In this order: the dash " - " is only there where it stood between ASCII words.
_CHINESE_REPLACEMENTS = (
    ("²", "平方"),
    ("³", "立方"),
    (".", "。"),
    (" - ", "，"),
    ("（", ""),
    ("）", ""),
    ("【", ""),
    ("】", ""),
    ("`", ""),
    ("——", " "),
)


def is_chinese(text: str) -> bool:
    """Whether any character is Chinese: then the whole text is treated so."""
    return _CHINESE.search(text) is not None


def is_tagged(text: str) -> bool:
    """Whether the text carries control tags, `<|…|>`: such a text is the model's own language and is left as it is."""
    return "<|" in text and "|>" in text


def normalize(text: str) -> str:
    """The whole text as it is to be read; "" for a blank one."""
    if is_tagged(text):
        return text
    text = text.strip()
    return _normalize_chinese(text) if is_chinese(text) else spell_out(text)


def _normalize_chinese(text: str) -> str:
    text = _LOOSE_BLANK.sub("", text.replace("\n", ""))
    for written, read in _CHINESE_REPLACEMENTS:
        text = text.replace(written, read)
    without = text.rstrip(_COMMAS)
    return text if without == text else without + "。"

"""Text to ids: the byte-level BPE of Qwen2 with CosyVoice2's added tokens.

Built from `vocab.json`, `merges.txt` and `tokenizer_config.json`; a model directory has no ready-made tokenizer.json.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE

from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail
from cosyvoice_worker.regular_files import open_regular
from cosyvoice_worker.text import special_tokens

VOCABULARY_FILE = "vocab.json"
MERGES_FILE = "merges.txt"
CONFIG_FILE = "tokenizer_config.json"
MAX_ENTRIES = 10**6  # of the vocabulary and of the merges; Qwen2 has 151,643
MAX_ADDED = 10**4
MAX_CHARACTERS = 32 * 1024 * 1024  # Qwen2's vocabulary has 3 million

# English contractions; words with one character before them; single digits; punctuation; line ends; blanks.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)


class Tokenizer:
    """Encodes as the model was trained with: no start, no end, added tokens found before anything else."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @classmethod
    def from_directory(cls, folder: Path) -> Tokenizer:
        """The tokenizer of the three files in `folder`.

        Raises WorkerError: MissingFile; IncompatibleModel for a file of another form, or for tokens without ids of
        their own after the vocabulary.
        """
        vocabulary = _json(folder, VOCABULARY_FILE)
        _require_ids(vocabulary)
        backend = _backend(vocabulary, _merges(folder, vocabulary))
        backend.normalizer = normalizers.NFC()
        words = pre_tokenizers.Split(Regex(_WORDS), behavior="isolated")
        symbols = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend.pre_tokenizer = pre_tokenizers.Sequence([words, symbols])
        backend.add_special_tokens(_configured(folder, first_id=len(vocabulary)))
        backend.add_special_tokens([_added(content) for content in special_tokens.ALL])
        return cls(backend)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`; [] for ""."""
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def id_of(self, token: str) -> int | None:
        """The id of one token, an added one too; None if there is no such token."""
        return self._backend.token_to_id(token)

    @property
    def size(self) -> int:
        """How many ids there are, added tokens included."""
        return self._backend.get_vocab_size(with_added_tokens=True)


def _backend(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> Backend:
    try:
        return Backend(BPE(vocab=vocabulary, merges=merges, unk_token=None))
    except (TypeError, ValueError) as error:  # ids that only equal whole numbers, symbols that are no text
        raise _unusable(VOCABULARY_FILE, f"it is no vocabulary: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _added(content: str) -> AddedToken:
    return AddedToken(content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)


def _configured(folder: Path, first_id: int) -> list[AddedToken]:
    """The added tokens of the configuration by their ids, which have to continue the vocabulary's."""
    entries = _json(folder, CONFIG_FILE).get("added_tokens_decoder", {})
    try:
        contents = {int(id_): entry["content"] for id_, entry in entries.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _unusable(CONFIG_FILE, f"added_tokens_decoder is malformed: {error!r}") from error
    if len(contents) > MAX_ADDED:
        raise _unusable(CONFIG_FILE, f"it adds {len(contents)} tokens, more than {MAX_ADDED}")
    if wrong := [content for content in contents.values() if not _is_text(content)]:
        raise _unusable(CONFIG_FILE, f"an added token is no text: {wrong[0]!r:.40}")
    expected = list(range(first_id, first_id + len(contents)))
    if sorted(contents) != expected:
        raise _unusable(
            CONFIG_FILE, f"its added tokens have the ids {sorted(contents)}, the vocabulary needs {expected}"
        )
    return [_added(contents[id_]) for id_ in expected]


def _is_text(content: object) -> bool:
    """Whether it is a string without half characters, which JSON can spell and UTF-8 cannot."""
    return isinstance(content, str) and not any("\ud800" <= character <= "\udfff" for character in content)


def _require_ids(vocabulary: dict[str, Any]) -> None:
    if len(vocabulary) > MAX_ENTRIES:
        raise _unusable(VOCABULARY_FILE, f"it has {len(vocabulary)} entries, more than {MAX_ENTRIES}")
    if sorted(vocabulary.values(), key=repr) != sorted(range(len(vocabulary)), key=repr):
        raise _unusable(VOCABULARY_FILE, f"its {len(vocabulary)} ids are not the numbers from 0 on")


def _merges(folder: Path, vocabulary: dict[str, Any]) -> list[tuple[str, str]]:
    """Pairs of symbols in the order they are joined; both and what they make have to be in the vocabulary."""
    merges = []
    for number, line in enumerate(_read(folder, MERGES_FILE).split("\n"), start=1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        first, _, second = line.partition(" ")
        if not second or not vocabulary.keys() >= {first, second, first + second}:
            raise _unusable(MERGES_FILE, f"line {number} joins no two symbols of {VOCABULARY_FILE}: {line[:40]!r}")
        merges.append((first, second))
        if len(merges) > MAX_ENTRIES:
            raise _unusable(MERGES_FILE, f"it has more than {MAX_ENTRIES} lines")
    return merges


def _json(folder: Path, name: str) -> dict[str, Any]:
    try:
        content = json.loads(_read(folder, name))
    except (ValueError, RecursionError) as error:
        raise _unusable(name, f"it is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise _unusable(name, f"it holds a {type(content).__name__}, not an object")
    return content


def _read(folder: Path, name: str) -> str:
    try:
        with io.TextIOWrapper(open_regular(folder / name), encoding="utf-8") as file:
            text = file.read(MAX_CHARACTERS + 1)
    except FileNotFoundError:
        message = f"the tokenizer's {name} is not in {folder}"
        raise fail(Reason.MISSING_FILE, Phase.MAP, message, file=f"{folder.name}/{name}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(name, f"it cannot be read: {error}") from error
    if len(text) > MAX_CHARACTERS:
        raise _unusable(name, f"it holds more than {MAX_CHARACTERS} characters")
    return text


def _unusable(name: str, what: str) -> WorkerError:
    message = f"the tokenizer's {name} cannot be used: {what}"
    return fail(Reason.INCOMPATIBLE_MODEL, Phase.MAP, message, file=name)

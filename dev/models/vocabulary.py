"""vocab.json of a byte-level BPE, made from its merges.txt."""

from __future__ import annotations

import json
from pathlib import Path


def write_vocabulary(folder: Path) -> None:
    """Write `folder`/vocab.json: the 256 byte symbols, then what each merge makes, then fillers that no merge reaches.

    The fillers end where the added tokens of tokenizer_config.json begin. Raises ValueError where there is no room.
    """
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    first_added = min(map(int, config["added_tokens_decoder"]))
    symbols = dict.fromkeys(byte_symbols())
    merges = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")[1:]  # the first line is a comment
    symbols.update(dict.fromkeys(merge.replace(" ", "") for merge in merges if merge))
    if len(symbols) > first_added:
        raise ValueError(f"{folder}: {len(symbols)} symbols, but the added tokens begin at {first_added}")
    symbols.update(dict.fromkeys(f"ĠĠ{filler}" for filler in range(len(symbols), first_added)))
    vocabulary = {symbol: id_ for id_, symbol in enumerate(symbols)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")


def byte_symbols() -> list[str]:
    """The printable character that byte-level BPE shows each byte value as: itself, or one from U+0100 on."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    substitutes = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(substitutes)) for byte in range(256)]

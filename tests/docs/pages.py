"""What the pages ask their reader to type: fenced blocks, and commands between the words."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ONE_ANSWER = ("sh", "bash", "shell")  # what comes of all its lines may be shown in a block right below
SHELLS = (*ONE_ANSWER, "console")
INLINE = "inline"  # the language of a command that stands between the words

_FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+|~~~+)(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^ *(?P=fence)$", re.M | re.S
)
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_PROGRAMS = r"""(?:sudo\ )?(?:kubectl|helm|curl|docker|make|git|pip|uv|pytest|rsync|tar|sha256sum|promtool|eval|export
    |python3?|cosyvoice-worker|cosyvoice-operator|apt-get|\.venv/\S+|dev/[\w.-]+|\.ci/run)"""
_COMMAND = re.compile(rf"{_PROGRAMS}\s+\S", re.X)


@dataclass(frozen=True)
class Snippet:
    """One thing to type, or what its reader is shown; `output` is what the page says comes of it."""

    page: str
    line: int
    language: str
    text: str
    output: str | None = None

    def __str__(self) -> str:
        first, *more = self.text.strip().splitlines()
        return f"{self.page}:{self.line} ({self.language}): {first}{' …' if more else ''}"


def pages() -> list[str]:
    """Every page that a user or a contributor reads, as paths in the tree."""
    found = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "charts/cosyvoice/README.md")]
    return [str(path.relative_to(ROOT)) for path in [*found, *sorted((ROOT / "docs").glob("*.md"))]]


def snippets(page: str, text: str | None = None) -> list[Snippet]:
    """The page's blocks and inline commands in the order in which they are read."""
    if text is None:
        text = (ROOT / page).read_text(encoding="utf-8")
    found: list[Snippet] = []
    end = 0
    for match in _FENCE.finditer(text):
        body = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.M)
        language = match["language"] or _unnamed(body)
        snippet = Snippet(page, _line(text, match.start()), language, body)
        between = text[end : match.start()]
        if found and not between.strip() and found[-1].language in ONE_ANSWER and language in ("", "json"):
            found[-1] = dataclasses.replace(found[-1], output=body)
        else:
            found.append(snippet)
        end = match.end()
    without = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in _SPAN.finditer(without):
        words = " ".join(match[1].split())
        if _COMMAND.match(words):
            line = _line(without, match.start())
            found.append(Snippet(page, line, INLINE, words))
    return sorted(found, key=lambda one: one.line)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _unnamed(body: str) -> str:
    """What stands after a prompt is typed, whether or not the block says so."""
    return "console" if re.search(r"^\$ ", body, re.M) else ""

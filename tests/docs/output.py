"""Whether what came is what a page shows, but for what is another each time: names, times, hashes, addresses."""

from __future__ import annotations

import json
import re

_EACH_TIME = [
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\bsha256:[0-9a-f]{64}\b", "DIGEST"),
    (r"\b\d+(\.\d+)? (bytes|s|ms|MiB|GiB)\b", r"N \2"),
    (r"(-[0-9a-f]{7,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-POD"),
    (r"\b[0-9a-f]{10}\b", "REVISION"),
    (r"\b[0-9a-f]{12}\b", "DIGEST"),
    (r"\bREVISION\s+\d+\s", "REVISION SECONDS "),  # of the load, a column beside it
    (r"(<invalid>|\b(\d+[dhms])+\b)( ?\((x\d+ over )?(\d+[dhms])+( ago)?\))?", "AGE"),
    (r"\bnode\d\b", "NODE"),
    (r"\d+\.\d+\.\d+\.\d+(:\d+)?", "ADDRESS"),
]


def stable(line: str) -> str:
    """The line without what is another each time, and with one space for many."""
    for pattern, word in _EACH_TIME:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())


def missing(shown: str, got: str) -> str | None:
    """The first line of what the page shows that does not come, in that order; None where all do.

    A line with `…` alone stands for any lines, and a `…` at a line's end for the rest of it. Events of one second
    come in any order.
    """
    lines = [stable(line) for line in got.splitlines()]
    came = iter(lines)
    for line in shown.splitlines():
        wanted = stable(line)
        if wanted in ("", "…"):
            continue
        beginning, cut, _ = wanted.partition(" …")
        where = iter(lines) if wanted.startswith(("Normal ", "Warning ")) else came
        if not any(one.startswith(beginning) if cut else one == wanted for one in where):
            return line
    return None


def last_line(shown: str) -> str:
    """The last line that is not empty or an ellipsis."""
    return [line for line in shown.splitlines() if line.strip() not in ("", "…")][-1]


def typed(console: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown below it."""
    pairs: list[tuple[str, str]] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            pairs.append((line.removeprefix("$ "), ""))
        elif not pairs:
            raise ValueError(f"a console block begins with a prompt, and not with {line!r}")
        elif line.startswith("> ") or pairs[-1][0].endswith("\\"):
            pairs[-1] = (f"{pairs[-1][0]}\n{line.removeprefix('> ')}", "")
        else:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]}{line}\n")
    return pairs


def differing(shown: str, got: str) -> str | None:
    """The first field of a JSON object that the page shows and that is not there, or is another one."""
    here = json.loads(got)
    for name, value in json.loads(shown).items():
        if stable(str(here.get(name))) != stable(str(value)):
            return f"{name}: {value}"
    return None

"""Every link of the pages leads somewhere, and every page is led to."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT, pages

INDEX = "docs/README.md"
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^(```+|~~~+).*?^\1$|`[^`\n]*`", re.M | re.S)
_HEADING = re.compile(r"^#+ +(.+)$", re.M)


def links(page: str) -> Iterator[tuple[str, str]]:
    """The page's links into the tree: the file, as a path in it, and the anchor ("" for none)."""
    text = _CODE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    for target in _LINK.findall(text):
        if not re.match(r"[a-z]+:", target):
            name, _, anchor = target.partition("#")
            file = (ROOT / page).parent / name if name else ROOT / page
            yield str(file.resolve().relative_to(ROOT)), anchor


def anchors(page: str) -> set[str]:
    """The anchors of the page's headings, as GitHub makes them."""
    text = re.sub(r"^(```+|~~~+).*?^\1$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", pages())
def test_every_link_leads_somewhere(page: str) -> None:
    for file, anchor in links(page):
        assert (ROOT / file).exists(), f"{page} leads to {file}, which does not exist"
        assert not anchor or anchor in anchors(file), f"{page} leads to #{anchor} of {file}, which has no such heading"


def test_the_index_leads_to_every_page() -> None:
    led_to = {file for file, _anchor in links(INDEX)}

    assert {page for page in pages() if page.startswith("docs/")} - led_to - {INDEX} == set()


def test_an_anchor_is_what_github_makes_of_a_heading() -> None:
    assert "load-how-long-does-a-full-size-model-take-to-load-and-how-much-memory-of-its-own-does-the-process-need" in (
        anchors("docs/benchmarks.md")
    )

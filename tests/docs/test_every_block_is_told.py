"""No block or command is on a page without somebody having told how it is run."""

from __future__ import annotations

import re

import pytest

from cosyvoice_operator import workerstatus
from cosyvoice_worker.outcome import Phase
from cosyvoice_worker.settings import parse_settings
from tests.docs.pages import INLINE, ROOT, SHELLS, Snippet, pages, snippets
from tests.docs.scene import DATA, understand
from tests.docs.scenes import SCENES
from tests.docs.told import BY_CI, NAMED, NOT_RUN, Instead, told

EVERYTHING = [snippet for page in pages() for snippet in snippets(page)]


def untold(snippet: Snippet) -> str | None:
    """Why nobody would run this snippet; None where a scene does or `told` says what is done instead."""
    typed = snippet.language in (*SHELLS, INLINE)
    if told(snippet) is not None or not snippet.language or (snippet.page in SCENES and typed):
        return None
    if snippet.language in DATA:
        document = understand(snippet)
        manifest = snippet.language == "yaml" and ("apiVersion" in document or "spec" in document)
        return None if snippet.page in SCENES or not manifest else f"{snippet}: no scene applies it"
    return (
        f"{snippet}\nNobody has told how to run this. Give {snippet.page} a scene in tests/docs/scenes.py, or say in "
        "tests/docs/told.py what is done instead, and why."
    )


@pytest.mark.parametrize("snippet", EVERYTHING, ids=str)
def test_it_is_told_how_each_block_is_run(snippet: Snippet) -> None:
    assert untold(snippet) is None


def test_a_block_on_a_page_without_a_scene_fails_with_words() -> None:
    (snippet,) = snippets("docs/new.md", "# New\n\n```sh\nkubectl get nodes\n```\n")

    message = untold(snippet)

    assert message is not None
    assert message.startswith("docs/new.md:3 (sh): kubectl get nodes\nNobody has told how to run this.")


def test_a_block_in_an_unknown_language_fails_with_words() -> None:
    (snippet,) = snippets("README.md", "```ruby\nputs 1\n```\n")

    assert "Nobody has told how to run this" in str(untold(snippet))


def test_nothing_is_told_of_what_is_on_no_page() -> None:
    texts = {(snippet.page, snippet.text.strip()) for snippet in EVERYTHING}

    for page, scene in SCENES.items():
        on_page = [text for where, text in texts if where == page]
        assert on_page, f"{page} has no snippets"
        assert [b for b in scene.beginnings() if not any(text.startswith(b.strip()) for text in on_page)] == []
    assert [key for key in NOT_RUN if not any(p == key[0] and t.startswith(key[1]) for p, t in texts)] == []
    assert [text for text in NAMED if not any(text == one for _, one in texts)] == []


@pytest.mark.parametrize("command", sorted(BY_CI))
def test_what_ci_is_said_to_run_it_runs(command: str) -> None:
    script = (ROOT / ".ci" / "run").read_text()

    target = command.removeprefix("make ")
    assert re.search(rf"^make --no-print-directory {target}\b", script, re.M)


def test_targets_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = [one for one in EVERYTHING if (found := told(one)) is not None and found[0] is Instead.TARGET]

    targets = {re.split(r"\s+", one.text)[1] for one in named}

    assert len(targets) > 5
    assert [target for target in targets if not re.search(rf"^{target}:.*## ", makefile, re.M)] == []


def test_the_configuration_that_the_architecture_shows_is_one_that_a_worker_takes() -> None:
    configuration, _ = [one for one in snippets("docs/architecture.md") if one.language == "json"]

    settings = parse_settings(configuration.text.encode(), Phase.STAGE)

    assert (settings.model, settings.version) == ("narrator", "v1.2.0")


def test_the_status_that_the_architecture_shows_is_one_that_the_operator_reads() -> None:
    _, status = [one for one in snippets("docs/architecture.md") if one.language == "json"]

    read = workerstatus.parse(re.sub(r'"phase": "Start[^"]*"', '"phase": "Ready"', status.text).encode())

    assert read is not None
    assert (read.revision, read.staged_bytes, read.load["warmUp"]) == ("3f9a1c0b7d", 57000000, 4.0)

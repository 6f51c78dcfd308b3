"""A page followed from its first line to its last, in a world that was prepared for it."""

from __future__ import annotations

import json
import logging
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from tests.docs import output
from tests.docs.pages import INLINE, ONE_ANSWER, Snippet, snippets
from tests.docs.reader import Reader, StuckError
from tests.docs.stage import Stage
from tests.docs.told import to_type, told

logger = logging.getLogger(__name__)
Action = Callable[[Stage], None]
AGAIN_SECONDS = 60


def nothing(stage: Stage) -> None:
    """Nothing has to be done."""


@dataclass(frozen=True)
class Scene:
    """What a page's reader finds, and what he does or waits for between the lines, by how the snippets begin."""

    world: Action = nothing
    before: Mapping[str, Action] = field(default_factory=dict)
    after: Mapping[str, Action] = field(default_factory=dict)
    instead: Mapping[str, Action] = field(default_factory=dict)
    end: Action = nothing
    long: bool = False  # takes minutes
    at_last: tuple[str, ...] = ()  # what stands first on the page and is done when the rest is

    def beginnings(self) -> set[str]:
        """Everything of the page that is named here."""
        return {*self.before, *self.after, *self.instead, *self.at_last}

    def play(self, page: str, stage: Stage) -> None:
        """Follow the page. Raises StuckError where its words do not get one through."""
        began = time.monotonic()
        self.world(stage)
        logger.info("%5.1f s  the world of %s", time.monotonic() - began, page)
        try:
            self._play(page, stage)
        finally:
            self.end(stage)

    def _play(self, page: str, stage: Stage) -> None:
        all_of_it = snippets(page)
        later = [one for one in all_of_it if one.text.startswith(self.at_last)] if self.at_last else []
        for snippet in [one for one in all_of_it if one not in later] + later:
            if told(snippet) is not None:
                continue
            began = time.monotonic()
            try:
                self._follow(snippet, stage)
                logger.info("%5.1f s  %s", time.monotonic() - began, snippet)
            except (StuckError, ValueError) as error:
                raise StuckError(f"{snippet}\n\n{error}") from error

    def _follow(self, snippet: Snippet, stage: Stage) -> None:
        for action in _named(self.before, snippet):
            action(stage)
        instead = _named(self.instead, snippet)
        for action in instead:
            action(stage)
        if not instead:
            follow(snippet, stage)
        for action in _named(self.after, snippet):
            action(stage)


def _named(actions: Mapping[str, Action], snippet: Snippet) -> list[Action]:
    return [action for beginning, action in actions.items() if snippet.text.startswith(beginning)]


def follow(snippet: Snippet, stage: Stage) -> None:
    """Do what one snippet says, and compare what comes with what the page shows."""
    reader = stage.reader
    if snippet.language in (*ONE_ANSWER, INLINE):
        _answer(reader, to_type(snippet.text), snippet.output or "")
    elif snippet.language == "console":
        for command, shown in output.typed(snippet.text):
            _answer(reader, command, shown)
    elif not snippet.language and stage.record is not None:
        stage.record.shows(snippet.text)
    elif snippet.language in DATA:
        understand(snippet)
        if snippet.language == "yaml":
            stage.apply(snippet.text)


def _answer(reader: Reader, command: str, shown: str) -> None:
    """Type a command and look for what is shown; a reader looks again, at what only tells how things are."""
    watches = shown and not shown.startswith("{") and (" -w" in command or "--watch" in command)
    until = output.last_line(shown) if watches else None
    patience = time.monotonic() + (AGAIN_SECONDS if command.startswith(("kubectl get ", "kubectl describe ")) else 0)
    while True:
        came = reader.type(command, until=until, may_fail=shown.startswith("error"))
        if not shown or until is not None:
            return
        missing = output.differing(shown, came) if shown.startswith("{") else output.missing(reader.meant(shown), came)
        if missing is None:
            return
        if time.monotonic() > patience:
            raise StuckError(f"{command}\n\nThe page shows, and there was no:\n{missing}\n\nbut there was:\n{came}")
        time.sleep(1)


def _model_patch(document: dict[str, Any]) -> bool:
    return set(document) == {"spec"} or set(document) == {"engine"}


def understand(snippet: Snippet) -> Any:
    """What a block of data says, read as what it claims to be. Raises ValueError for one that nobody can use."""
    try:
        document = DATA[snippet.language](snippet.text)
    except Exception as error:
        raise ValueError(f"is no {snippet.language}: {error}") from error
    known = snippet.language != "yaml" or "apiVersion" in document or _model_patch(document)
    if not known and "scrape_configs" not in document:
        raise ValueError(f"nobody has told what a yaml block of {', '.join(document)} is (tests/docs/scene.py)")
    return document


DATA: Mapping[str, Callable[[str], Any]] = {"yaml": yaml.safe_load, "json": json.loads, "toml": tomllib.loads}

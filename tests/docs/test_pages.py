"""Whoever does what a page says gets where it leads: on the local cluster, in a clone of this tree."""

from __future__ import annotations

import pytest

from tests.docs.scenes import SCENES
from tests.docs.stage import Stage

PAGES = [pytest.param(page, marks=[pytest.mark.long] if scene.long else [], id=page) for page, scene in SCENES.items()]


@pytest.mark.parametrize("page", PAGES)
def test_a_reader_who_does_what_the_page_says_gets_through(page: str, stage: Stage) -> None:
    SCENES[page].play(page, stage)

"""What stops a release, and what a load test counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cosyvoice_worker._version import __version__
from dev import load, release


def test_this_tree_has_one_version_and_current_generated_files() -> None:
    assert list(release.problems_of_the_version(__version__, release.ROOT)) == []
    assert list(release.problems_of_generated_files()) == []


def test_a_version_that_differs_somewhere_is_told_with_the_place(tmp_path: Path) -> None:
    for name in ("charts/cosyvoice/Chart.yaml", "docs/install.md", "examples/narrator-full.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(release.ROOT / name, tmp_path / name)

    told = list(release.problems_of_the_version("99.0.0", tmp_path))

    assert [line.split(" ")[0] for line in told] == [
        "Chart.yaml",
        "Chart.yaml",
        "docs/install.md",
        "examples/narrator-full.yaml",
    ]
    assert next(iter(release.problems_of_the_version("soon", tmp_path))).startswith("'soon' is no version")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("## 1.0.0 - 2026-01-02\n\n- A thing.\n", 0),
        ("## Unreleased\n\n- A thing.\n", 1),
        ("## 1.0.0\n\n- Without a date.\n", 1),
        ("## 1.0.0 - 2026-01-02\n\n## 0.9.0 - 2026-01-01\n\n- A thing.\n", 1),
    ],
)
def test_the_changelog_has_a_dated_section_that_says_something(text: str, problems: int) -> None:
    assert len(list(release.problems_of_the_changelog("1.0.0", text))) == problems


@pytest.mark.parametrize(
    ("licence", "problems"),
    [("Apache-2.0", 0), ("MIT License", 0), ("BSD-3-Clause", 0), ("LGPL-2.1", 0), ("GPL-3.0-only", 1), ("", 1)],
)
def test_a_licence_that_asks_for_more_than_a_notice_stops_a_release(licence: str, problems: int) -> None:
    assert len(list(release.problems_of_licences({"package": licence}))) == problems


def test_a_refused_request_is_no_error_and_counts_in_no_latency() -> None:
    replies = (load.Reply(0.5, 2.0, 4.0, 200), load.Reply(0.0, 0.01, 0.0, 429), load.Reply(0.0, 9.0, 0.0, 0))

    line = load.Row(users=3, characters=20, replies=replies, seconds=2.0).line()

    assert line == "| 3 x 20 | 3 | 0.50 / 0.50 | 2.00 / 2.00 | 0.50 | 1 | 1 |"


@pytest.mark.parametrize("characters", [1, 20, 68, 400])
def test_a_text_has_the_length_that_was_asked_for(characters: int) -> None:
    assert len(load.text_of(characters)) == characters

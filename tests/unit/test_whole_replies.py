"""The judgement over all replies of a rollout: it lets nothing pass that a listener would notice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dev.traffic import Reply
from tests.cluster.traffic import check_whole

OLD = Reply(
    began=1.0, seconds=2.0, stream=False, version="v1", tokens=5, tokens_sha256="a", samples=9, audio_sha256="x"
)
NEW = replace(OLD, began=4.0, version="v2", tokens=6, tokens_sha256="b", audio_sha256="y")


def test_replies_that_are_each_of_one_version_pass() -> None:
    check_whole([OLD, NEW, OLD, NEW], {"v1": {}, "v2": {}})


@pytest.mark.parametrize(
    "odd",
    [
        replace(OLD, error="IncompleteRead"),
        replace(OLD, audio_sha256="z"),
        replace(OLD, samples=8),
        replace(OLD, version="v2"),
        replace(NEW, version="v1"),
        replace(NEW, version="bad-missing-tensor"),
        replace(NEW, version=None),
    ],
    ids=["failed", "other sound", "fewer samples", "old as new", "new as old", "bad version", "nobody's"],
)
def test_one_odd_reply_among_many_does_not(odd: Reply) -> None:
    with pytest.raises(AssertionError):
        check_whole([OLD, NEW, odd, OLD, NEW], {"v1": {}, "v2": {}})


def test_what_was_learned_of_a_version_holds_for_later_replies() -> None:
    learned: dict[bool, tuple[object, ...]] = {}
    check_whole([OLD], {"v1": learned})

    with pytest.raises(AssertionError):
        check_whole([replace(OLD, audio_sha256="z")], {"v1": learned})


def test_versions_that_sound_the_same_prove_nothing() -> None:
    with pytest.raises(AssertionError, match="sound the same"):
        check_whole([OLD, replace(OLD, version="v2")], {"v1": {}, "v2": {}})

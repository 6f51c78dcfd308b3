"""The labels by which the revisions of a model read as a history."""

from __future__ import annotations

from dataclasses import replace as altered
from typing import Any

import pytest

from cosyvoice_operator import history, names
from cosyvoice_operator.api_status import Quarantined, Staged, Status
from cosyvoice_operator.observed import Observed
from tests.unit.operator.builders import stored

DIGEST = "sha256:" + "0123456789abcdef" * 4
FAILED_R2 = (Quarantined(revision="r2", version="v2", reason="Crashed", message="", since="2026-11-30T12:00:00Z"),)


def outcome(before: str | None, revision: str, status: Status, *, condemned: bool = False) -> str | None:
    """The outcome that the label of `revision` says after a pass."""
    seen = Observed(revisions=(altered(stored(revision), outcome=before),))
    found = history.relabellings(seen, status, condemned=condemned)
    return found[0].labels.get(names.LABEL_OUTCOME) if found else before


@pytest.mark.parametrize(
    ("before", "status", "condemned", "expected"),
    [
        (None, Status(target_revision="r2"), False, "Pending"),
        ("Pending", Status(target_revision="r2", last_good_revision="r2"), False, "Good"),
        ("Pending", Status(target_revision="r2", quarantine=FAILED_R2), True, "Failed"),
        ("Pending", Status(target_revision="r2"), True, "Failed"),  # it fails, and stays for want of another
        ("Failed", Status(target_revision="r2"), False, "Failed"),  # it is tried again
        ("Failed", Status(target_revision="r2", last_good_revision="r2"), False, "Good"),
        ("Good", Status(target_revision="r3", last_good_revision="r3"), False, "Good"),
        ("Good", Status(target_revision="r2", last_good_revision="r1"), False, "Good"),  # it is gone back to
        ("Good", Status(target_revision="r2", quarantine=FAILED_R2), False, "Failed"),
        (None, Status(target_revision="r3"), False, None),  # of an earlier release: nobody knows
    ],
)
def test_a_revision_is_pending_then_good_or_failed(
    before: str | None, status: Status, condemned: bool, expected: str | None
) -> None:
    assert outcome(before, "r2", status, condemned=condemned) == expected


def test_the_digest_of_what_was_staged_is_told_in_short() -> None:
    staged = Staged(revision="r2", digest=DIGEST)
    seen = Observed(revisions=(stored("r2"), stored("r1")))

    found = history.relabellings(seen, Status(target_revision="r2", staged=staged), condemned=False)

    assert [(one.revision, one.labels.get(names.LABEL_DIGEST)) for one in found] == [("r2", "0123456789ab")]


@pytest.mark.parametrize("told", ["sha256:../../x y", "sha256:00", DIGEST.upper(), "x" * 300])
def test_a_pods_word_that_is_no_digest_becomes_neither_label_nor_annotation(told: str) -> None:
    status = Status(target_revision="r2", staged=Staged(revision="r2", digest=told))

    (found,) = history.relabellings(Observed(revisions=(stored("r2"),)), status, condemned=False)

    assert (dict(found.labels), dict(found.annotations)) == ({names.LABEL_OUTCOME: "Pending"}, {})


@pytest.mark.parametrize("staged", [None, Staged(revision="r2", digest=DIGEST)])
def test_labels_that_say_so_already_are_not_written(staged: Any) -> None:
    kept = altered(stored("r2"), outcome="Good", digest="0123456789ab", pin=DIGEST)
    status = Status(target_revision="r2", last_good_revision="r2", staged=staged)

    assert history.relabellings(Observed(revisions=(kept,)), status, condemned=False) == ()


def test_a_digest_whose_pods_are_gone_is_written_down_from_the_status() -> None:
    status = Status(target_revision="r2", staged=Staged(revision="r2", digest=DIGEST))

    (found,) = history.relabellings(Observed(revisions=(stored("r2"),)), status, condemned=False)

    assert found.annotations == {names.ANNOTATION_DIGEST: DIGEST}

"""Which clusters there are."""

from __future__ import annotations

from pathlib import Path

from dev.cluster import registry


def test_a_cluster_that_was_entered_is_found_as_it_was_planned(tmp_path: Path) -> None:
    planned = registry.plan("trial", 3, tmp_path, tmp_path / "cache")

    registry.enter(planned)

    assert registry.find("trial", tmp_path) == planned
    assert registry.names(tmp_path) == ["trial"]
    assert registry.is_current(planned)


def test_a_cluster_that_was_never_entered_is_not_found(tmp_path: Path) -> None:
    assert registry.find("trial", tmp_path) is None


def test_a_second_cluster_is_planned_beside_the_first(tmp_path: Path) -> None:
    first = registry.plan("one", 1, tmp_path, tmp_path)
    registry.enter(first)

    assert registry.plan("two", 1, tmp_path, tmp_path).slot != first.slot


def test_a_cluster_of_other_binaries_is_not_current(tmp_path: Path) -> None:
    planned = registry.plan("trial", 1, tmp_path, tmp_path)
    registry.enter(planned)
    record = planned.state / registry.RECORD
    record.write_text(record.read_text().replace('"binaries": ["', '"binaries": ["0'))

    assert not registry.is_current(planned)

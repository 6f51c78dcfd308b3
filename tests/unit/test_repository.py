"""Rules of the tree that no linter knows."""

from __future__ import annotations

import operator
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def tracked_files(pattern: str) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", pattern],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [ROOT / line for line in listing.stdout.splitlines() if (ROOT / line).exists()]


def test_operator_folder_is_no_package_because_it_would_shadow_the_standard_library() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert not Path(operator.__file__).is_relative_to(ROOT)


@pytest.mark.parametrize("folder", ["operator", "worker", "dev", "benchmarks"])
def test_no_source_file_is_longer_than_300_lines(folder: str) -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked_files(f"{folder}/*.py")
        if (lines := len(path.read_text().splitlines())) > 300
    }
    assert long == {}


def test_the_median_source_file_has_at_most_120_lines() -> None:
    files = [path for folder in ("operator", "worker", "dev") for path in tracked_files(f"{folder}/*.py")]
    lengths = sorted(length for path in files if (length := len(path.read_text().splitlines())) > 1)
    assert lengths[len(lengths) // 2] <= 120

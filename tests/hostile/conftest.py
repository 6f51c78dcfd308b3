"""A good model to make hostile ones of."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.cluster import registry
from dev.demo import source


@pytest.fixture(scope="session")
def good() -> Path:
    """The small model. Nobody writes into it."""
    model, _recording = source.make_tiny(registry.default_cache() / "tests")
    return model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a command writes."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder

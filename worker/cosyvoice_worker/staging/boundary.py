"""Where symbolic links of a model directory may lead."""

from __future__ import annotations

from pathlib import Path

from cosyvoice_worker.names import SOURCE_ROOT


def boundary_of(path: str) -> Path:
    """The whole mounted claim that the model directory `path` lies in, or the directory itself."""
    return Path(SOURCE_ROOT) if Path(path).is_relative_to(SOURCE_ROOT) else Path(path)

"""Where symbolic links of a model directory may lead."""

from __future__ import annotations

from pathlib import Path

from cosyvoice_worker.names import SOURCE_ROOT


def boundary_of(path: str, root: Path = Path(SOURCE_ROOT)) -> Path:
    """The whole mounted claim, wherever the model directory `path` is said to lie; without one, that directory."""
    return root if root.is_dir() or Path(path).is_relative_to(root) else Path(path)

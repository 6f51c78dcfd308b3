"""Write a model directory: `python -m dev.models tiny DIR` (57 MB) or `python -m dev.models full DIR` (2.4 GiB)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from dev.models import full, tiny

WRITERS: dict[str, Callable[[Path], Path]] = {"tiny": tiny.write, "full": full.write}


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(prog="python -m dev.models", description=__doc__)
    parser.add_argument("size", choices=sorted(WRITERS))
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    print(WRITERS[arguments.size](arguments.directory))


if __name__ == "__main__":
    main()

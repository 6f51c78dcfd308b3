"""Run this project's tests inside the worker image, with the image's Python, torch and numpy."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from dev.images import packages, sandbox
from dev.images.bundle import Mount
from dev.images.layout import REPOSITORY, Layout

PROJECT = "/project"
PACKAGES = "/packages"
# What the tests import or read. Not the worker's code: that is tested as the image has it.
NEEDED = ("dev", "tests", "pyproject.toml")


def run_tests(layout: Layout, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run pytest on paths of the repository ("tests/engine"), with options if wanted; its output is in the result."""
    mounts = [Mount(REPOSITORY / name, f"{PROJECT}/{name}") for name in NEEDED]
    mounts.append(Mount(packages.packages_for_tests(), PACKAGES))
    env = {
        "PYTHONPATH": PACKAGES,
        "OMP_NUM_THREADS": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": "/tmp/hypothesis",
    }
    words = ["python", "-m", "pytest", "-p", "no:cacheprovider", "-c", f"{PROJECT}/pyproject.toml"]
    places = [_in_project(argument) for argument in arguments]
    return sandbox.run(layout, "worker", [*words, f"--rootdir={PROJECT}", *places], mounts=mounts, env=env)


def _in_project(argument: str) -> str:
    """A path of the repository as the image sees it; options and their values stay as they are."""
    path = argument.split("::", maxsplit=1)[0]
    return f"{PROJECT}/{argument}" if path and (REPOSITORY / path).exists() else argument

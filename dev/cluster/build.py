"""Building the cluster's binaries with Go, once for each state of their modules, with progress to look at."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from dev.cluster import registry, toolchain
from dev.cluster.errors import ClusterError
from dev.cluster.modules import ENVIRONMENT, MODULES, Module
from dev.cluster.shell import run

FIRST_BUILD = (
    "the first time takes 10 to 20 minutes of two cores and 4 GB below Go's caches; later it is a matter of seconds"
)
PROGRESS_SECONDS = 10.0
# Listing the packages downloads the modules first.
LISTING_SECONDS = 1800.0
TAIL_LINES = 20


def folder(module: Module, cache: Path) -> Path:
    """Where the module's binaries are or will be."""
    return cache / "bin" / f"{module.name}-{module.key}"


def is_built(module: Module, cache: Path) -> bool:
    return all((folder(module, cache) / binary).exists() for binary in module.binaries)


def build_all(cache: Path, go: Path, say: Callable[[str], None]) -> None:
    """Build every module that is not in the cache. `go` is the Go command."""
    missing = [module for module in MODULES if not is_built(module, cache)]
    if missing:
        say(f"Building {', '.join(module.name for module in missing)} from source: {FIRST_BUILD}.")
    for module in missing:
        build(module, cache, go, say)


def built(module: Module, cache: Path, say: Callable[[str], None]) -> Path:
    """Where the module's binaries are; they are built now if they are not there, by one process at a time."""
    if not is_built(module, cache):
        with registry.lock(cache, module.name):
            if not is_built(module, cache):
                say(f"Building {module.name} from source: the first time takes a minute or two.")
                build(module, cache, toolchain.find_go(cache, say), say)
    return folder(module, cache)


def build(module: Module, cache: Path, go: Path, say: Callable[[str], None]) -> None:
    """Build one module, whether it is in the cache or not."""
    started = time.monotonic()
    _build(module, cache, go, say)
    say(f"  {module.name}: built in {time.monotonic() - started:.0f} s, kept in {folder(module, cache)}")


def _build(module: Module, cache: Path, go: Path, say: Callable[[str], None]) -> None:
    target = folder(module, cache)
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    # A go.work of the user's in a folder above must not mix in.
    environment = {**os.environ, "GOWORK": "off", **ENVIRONMENT}
    listing = run(
        [go, "list", "-mod=readonly", "-deps", *_tags(module), module.target],
        env=environment,
        cwd=module.directory,
        timeout=LISTING_SECONDS,
    )
    # -v names every package when its compilation starts; those in Go's cache are not named.
    command = [str(go), "build", "-v", "-mod=readonly", "-trimpath", *module.flags, "-o", f"{partial}/", module.target]
    _run_with_progress(module, command, environment, len(listing.splitlines()), say)
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


def _tags(module: Module) -> tuple[str, ...]:
    flags = module.flags
    return flags[flags.index("-tags") : flags.index("-tags") + 2] if "-tags" in flags else ()


def _run_with_progress(
    module: Module, command: list[str], environment: dict[str, str], packages: int, say: Callable[[str], None]
) -> None:
    started = told = time.monotonic()
    compiled = 0
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=module.directory, env=environment, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        for line in process.stderr or ():
            lines = [*lines[-TAIL_LINES:], line.rstrip()]
            compiled += "/" in line and " " not in line.strip()
            if time.monotonic() - told > PROGRESS_SECONDS:
                told = time.monotonic()
                say(f"  {module.name}: {told - started:4.0f} s, {compiled} of at most {packages} packages compiled")
    if process.returncode:
        raise ClusterError(
            f"building {module.name} failed (`{' '.join(command)}` in {module.directory}):\n" + "\n".join(lines)
        )

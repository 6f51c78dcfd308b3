"""Finding a Go that builds the modules."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from dev.cluster.errors import ClusterError
from dev.cluster.modules import MODULES
from dev.cluster.shell import run

# From this version on the Go command fetches the version that a go.mod asks for.
SWITCHES_ITSELF = (1, 21)


def find_go() -> Path:
    """The Go command; ClusterError with what to do if there is none or it is too old to build or to renew itself."""
    needed = max((module.go_version for module in MODULES), key=parse)
    advice = f"install Go {needed} or newer from https://go.dev/dl and put its bin folder into PATH"
    found = shutil.which("go")
    if found is None:
        raise ClusterError(f"no `go` in PATH, and the cluster is built from source: {advice}")
    said = run([found, "env", "GOVERSION", "GOTOOLCHAIN"], cwd=Path("/")).split("\n")
    version, switching = said[0].removeprefix("go"), os.environ.get("GOTOOLCHAIN") or said[1]
    if parse(version) >= parse(needed):
        return Path(found)
    if parse(version) >= SWITCHES_ITSELF and not switching.startswith("local"):
        return Path(found)
    raise ClusterError(f"{found} is Go {version} (GOTOOLCHAIN={switching}), {needed} is needed: {advice}")


def parse(version: str) -> tuple[int, ...]:
    """`1.26.6` as (1, 26, 6); what follows the numbers (`rc1`) is left out."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()

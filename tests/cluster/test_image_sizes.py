"""What the images weigh, and what they say they are made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dev import images
from dev.images import sbom, weight
from dev.images.layout import default_layout
from dev.images.weight import MEGABYTE

KINDS = ["operator", "worker"]

# Megabytes unpacked, megabytes compressed, layers. A cold node waits for them before anything else happens.
LIMITS = {"operator": (280, 80, 4), "worker": (700, 220, 4)}


@pytest.mark.parametrize("kind", KINDS)
def test_the_image_stays_small(kind: str) -> None:
    unpacked, packed, layers = LIMITS[kind]

    weighed = weight.weigh(default_layout(), getattr(images.refs(), kind).id)

    assert weighed.unpacked <= unpacked * MEGABYTE, weighed
    assert weighed.packed <= packed * MEGABYTE, weighed
    assert weighed.layers <= layers, weighed


def test_the_bill_of_materials_names_debians_and_pythons_packages(tmp_path: Path) -> None:
    written = sbom.write(default_layout(), "worker", tmp_path)

    document = json.loads(written.read_text(encoding="utf-8"))
    listed = {(locator.split("@")[0], package["versionInfo"]) for package, locator in _located(document)}
    names = {name for name, _ in listed}
    assert document["spdxVersion"].startswith("SPDX-2")
    assert {"pkg:deb/debian/libtorch2.6", "pkg:deb/debian/python3.13", "pkg:pypi/tokenizers"} <= names
    assert "pkg:deb/debian/libopenmpi40" not in names
    assert all(version for _, version in listed)


def _located(document: dict) -> list[tuple[dict, str]]:
    """Every package with its package URL."""
    return [
        (package, reference["referenceLocator"])
        for package in document["packages"]
        for reference in package.get("externalRefs", ())
        if reference["referenceType"] == "purl"
    ]

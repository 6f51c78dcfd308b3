"""What an image weighs: unpacked, as on a node, and packed, as on the way there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from dev.images import locks
from dev.images.errors import ImageError
from dev.images.layout import Layout
from dev.images.storage import open_storage

MEGABYTE = 1_000_000
UNITS = {"B": 1, "KB": 1_000, "MB": MEGABYTE, "GB": 1_000 * MEGABYTE}


@dataclass(frozen=True, slots=True)
class Weight:
    """Sizes in bytes; `unpacked` to the three digits that buildah tells, `packed` with gzip."""

    unpacked: int
    packed: int
    layers: int

    def __str__(self) -> str:
        unpacked, packed = (round(size / MEGABYTE) for size in (self.unpacked, self.packed))
        return f"{unpacked} MB unpacked, {packed} MB compressed, {self.layers} layers"


def weigh(layout: Layout, name: str) -> Weight:
    """Weigh the image that has the name or the ID `name`; compressing it takes some ten seconds."""
    storage = open_storage(layout)
    with packed(layout, name) as archive:
        return Weight(parse_size(storage.image_size(name)), archive.stat().st_size, storage.image_config(name).layers)


@contextmanager
def packed(layout: Layout, name: str) -> Iterator[Path]:
    """The image as one file in the form of registries, its layers compressed; it goes with the context."""
    with locks.held(layout.use_lock, shared=True), TemporaryDirectory(dir=layout.scratch) as folder:
        archive = Path(folder) / "image.tar"
        open_storage(layout).output("push", "--quiet", name, f"oci-archive:{archive}")
        yield archive


def parse_size(text: str) -> int:
    """Bytes of a size as buildah writes it: "664 MB"."""
    number, _, unit = text.partition(" ")
    try:
        return round(float(number) * UNITS[unit.upper()])
    except (ValueError, KeyError) as error:
        raise ImageError(f"buildah tells the size {text!r}; expected a number and one of {', '.join(UNITS)}") from error

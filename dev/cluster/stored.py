"""What a node's image store holds, read from `ctr images list`, and what of it is out of date. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

# containerd knows an image by the digest of its manifest, which it makes up itself for an archive; so the image ID,
# which the archive does have, is kept in a label, and the second of the import in another.
ID_LABEL = "cosyvoice.dev/image-id"
TIME_LABEL = "cosyvoice.dev/imported"
BUILDS_KEPT = 2


@dataclass(frozen=True)
class StoredImage:
    """One image by its full name. `image_id` is empty and `imported` 0 where it came in by other ways."""

    name: str
    image_id: str
    imported: int

    @property
    def repository(self) -> str:
        """The name without its tag."""
        return self.name.rsplit(":", 1)[0]


def parse(listing: str) -> list[StoredImage]:
    """The images of `ctr images list`: a head line, then name first and labels (`a=1,b=2`, or `-`) last."""
    images = []
    for line in listing.splitlines()[1:]:
        words = line.split()
        labels = dict(pair.split("=", 1) for pair in words[-1].split(",") if "=" in pair)
        images.append(StoredImage(words[0], labels.get(ID_LABEL, ""), int(labels.get(TIME_LABEL, "0"))))
    return images


def outdated(images: Iterable[StoredImage]) -> list[StoredImage]:
    """Imported builds beyond the newest of each repository: a day's work is a dozen of them, each with its own tag."""
    imported = sorted(
        (one for one in images if one.image_id), key=lambda one: (one.repository, -one.imported, one.name)
    )
    found: list[StoredImage] = []
    for _, builds in groupby(imported, key=lambda one: one.repository):
        found += list(builds)[BUILDS_KEPT:]
    return found

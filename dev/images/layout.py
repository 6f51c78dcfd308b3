"""Where image building keeps its things: one folder of the user's cache, never the source tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dev.cluster.registry import default_cache

REPOSITORY = Path(__file__).resolve().parents[2]

# The base of both images, as the Dockerfiles name it, and the Python it brings.
BASE_SUITE = "trixie"
BASE_IMAGE = f"debian:{BASE_SUITE}-slim"
IMAGE_PYTHON = "3.13"

# Every time stamp inside the images: equal content then gives equal layers and an equal image ID.
EPOCH = 1_750_000_000


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one cache folder."""

    root: Path

    @property
    def base_archive(self) -> Path:
        return self.root / f"base-{BASE_SUITE}.tar"

    @property
    def storage(self) -> Path:
        """buildah's layers and its state of running containers."""
        return self.root / "storage"

    @property
    def storage_conf(self) -> Path:
        return self.root / "storage.conf"

    @property
    def scratch(self) -> Path:
        """Temporary files: archives on their way into a cluster, bundles of running containers."""
        return self.root / "scratch"

    @property
    def runtime_state(self) -> Path:
        """runc's state of running containers."""
        return self.root / "runc"

    @property
    def build_lock(self) -> Path:
        """Held exclusively by whoever builds."""
        return self.root / "build.lock"

    @property
    def use_lock(self) -> Path:
        """Held in common by running containers and exports, exclusively by whoever clears leftovers away."""
        return self.root / "use.lock"

    def build_log(self, kind: str) -> Path:
        """Everything that the last build of an image said."""
        return self.root / f"build-{kind}.log"

    @property
    def references(self) -> Path:
        """What the last build made; see `references`."""
        return self.root / "references.json"

    @property
    def packages(self) -> Path:
        """Python packages to be mounted into an image; see `packages`."""
        return self.root / "packages"


def default_layout() -> Layout:
    """The layout that the command line uses."""
    return Layout(default_cache() / "image-build")

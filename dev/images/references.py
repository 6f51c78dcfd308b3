"""The names under which the built images are known."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from dev.images.errors import ImageError

KINDS = ("operator", "worker")
CUDA_WORKER = "worker-cuda"  # 4 GB: built where somebody asks for it by name, and kept out of the local cluster
LOCAL_REGISTRY = "localhost"
ID_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Image:
    """A built image: its name without registry or tag, its ID (64 hex digits), and the reference that pods use."""

    name: str
    id: str
    reference: str


@dataclass(frozen=True, slots=True)
class References:
    """Both images of one build."""

    operator: Image
    worker: Image


def repository(kind: str) -> str:
    """The image name of a kind, without registry."""
    return f"cosyvoice-{kind}"


def working_name(kind: str) -> str:
    """The name of the newest build inside buildah's storage."""
    return f"{LOCAL_REGISTRY}/{repository(kind)}:latest"


def image(kind: str, version: str, image_id: str, registry: str = LOCAL_REGISTRY) -> Image:
    """Name a build by its version and its content, so that another content never hides behind the same name."""
    tag = f"{version.replace('+', '-')}-{image_id[:ID_DIGITS]}"
    return Image(repository(kind), image_id, f"{registry.rstrip('/')}/{repository(kind)}:{tag}")


def write(path: Path, built: dict[str, Image]) -> None:
    """Record builds, keeping what the file says about images that were not built this time."""
    known = _read_all(path) | built
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({kind: asdict(known[kind]) for kind in sorted(known)}, indent=2) + "\n")
    partial.replace(path)


def read(path: Path) -> References:
    """What the last builds made; ImageError if one of the images was never built."""
    known = _read_all(path)
    missing = [kind for kind in KINDS if kind not in known]
    if missing:
        raise ImageError(f"not built yet: {', '.join(missing)}. `make images` builds the images")
    return References(operator=known["operator"], worker=known["worker"])


def _read_all(path: Path) -> dict[str, Image]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return {kind: Image(**entries[kind]) for kind in KINDS if kind in entries}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise ImageError(f"{path} cannot be read ({error}); delete it and run `make images`") from error

"""Where the files of the container are: both versions, with and without a namespace, from inside a leaf too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")

# The cgroups that `delegation` makes below the container's.
FRONT = "front"
ENGINE = "engine-"


def is_unified(mount: Path) -> bool:
    """Whether `mount` shows cgroup version 2, and not the hierarchies of version 1."""
    return (mount / "cgroup.controllers").is_file()


def directories(mount: Path, membership: Path, controller: str) -> Iterator[Path]:
    """The container's cgroup below `mount` and all above it. `controller` is "" for version 2.

    In a container the mount itself may be the container's cgroup while the membership still names the node's path.
    """
    for line in text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            inside = Path(path.lstrip("/"))
            if ".." in inside.parts:  # of a process that is outside of its cgroup namespace
                break
            if inside.name == FRONT or inside.name.startswith(ENGINE):
                inside = inside.parent
            yield from (mount / part for part in (inside, *inside.parents))
            return
    yield mount


def container(mount: Path, membership: Path, controller: str = "") -> Path:
    """The container's cgroup: the innermost that can be seen from here."""
    candidates = list(directories(mount, membership, controller))
    return next((directory for directory in candidates if directory.is_dir()), candidates[-1])


def containers(mount: Path, membership: Path) -> tuple[Path, Path]:
    """The container's cgroup in version 2, and its memory cgroup in version 1; one of them has no files."""
    return container(mount, membership), container(mount / "memory", membership, "memory")


def text(path: Path) -> str:
    """What the file says; nothing where there is none, or none that may be read."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return ""


def integer(path: Path) -> int | None:
    """The number in the file; None for "max" and where there is none."""
    content = text(path)
    return int(content) if content.isdecimal() else None


def keyed(path: Path) -> dict[str, int]:
    """A file of lines `name value`."""
    pairs = [line.split() for line in text(path).splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}

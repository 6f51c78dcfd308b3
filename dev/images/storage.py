"""buildah with a storage of its own, and what a killed run may have left in it."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dev.images import command, locks
from dev.images.errors import ImageError
from dev.images.layout import Layout


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What an image says about running it."""

    user: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    env: tuple[str, ...]
    labels: dict[str, str]
    ports: frozenset[str]
    layers: int


@dataclass(frozen=True, slots=True)
class Storage:
    """buildah's commands against the storage of `layout`."""

    layout: Layout

    @property
    def env(self) -> dict[str, str]:
        """The environment in which buildah uses this storage and no other."""
        return os.environ | {
            "CONTAINERS_STORAGE_CONF": str(self.layout.storage_conf),
            "TMPDIR": str(self.layout.scratch),
            "BUILDAH_ISOLATION": "chroot",
        }

    def output(self, *arguments: str) -> str:
        """Run buildah quietly and return what it prints."""
        return command.output(["buildah", *arguments], env=self.env)

    def stream(self, *arguments: str) -> None:
        """Run buildah with its output on the terminal."""
        command.stream(["buildah", *arguments], env=self.env)

    def logged(self, *arguments: str, log: Path, shown: re.Pattern[str]) -> None:
        """Run buildah with its output in a file; see `command.logged`."""
        command.logged(["buildah", *arguments], log, shown, env=self.env)

    def has_image(self, name: str) -> bool:
        """Whether an image of this name is in the storage."""
        return bool(self.output("images", "--quiet", "--filter", f"reference={name}"))

    def image_id(self, name: str) -> str:
        """The 64 hex digits that identify the content and configuration of an image."""
        return self.output("inspect", "--type", "image", "--format", "{{.FromImageID}}", name)

    def image_size(self, name: str) -> str:
        """The uncompressed size of the image of this name or ID, for a person to read."""
        [image] = json.loads(self.output("images", "--json", name))
        return str(image["size"])

    def image_config(self, name: str) -> ImageConfig:
        """The configuration of an image."""
        return parse_config(json.loads(self.output("inspect", "--type", "image", name)))


def parse_config(inspected: dict[str, Any]) -> ImageConfig:
    """Read `buildah inspect --type image`."""
    image = inspected["OCIv1"]
    config = image.get("config", {})
    return ImageConfig(
        user=config.get("User", ""),
        entrypoint=tuple(config.get("Entrypoint") or ()),
        command=tuple(config.get("Cmd") or ()),
        env=tuple(config.get("Env") or ()),
        labels=dict(config.get("Labels") or {}),
        ports=frozenset(config.get("ExposedPorts") or ()),
        layers=len(image["rootfs"]["diff_ids"]),
    )


def open_storage(layout: Layout) -> Storage:
    """The storage of `layout`; its folder and configuration are made if they are not there."""
    layout.scratch.mkdir(parents=True, exist_ok=True)
    configuration = (
        '[storage]\ndriver = "overlay"\n'
        f'graphroot = "{layout.storage / "graph"}"\n'
        f'runroot = "{layout.storage / "run"}"\n'
    )
    if not layout.storage_conf.exists() or layout.storage_conf.read_text(encoding="utf-8") != configuration:
        layout.storage_conf.write_text(configuration, encoding="utf-8")
    return Storage(layout)


def clear_leftovers(storage: Storage) -> None:
    """Remove what killed runs left: mounts, working containers, temporary files, a storage that cannot be read.

    Does nothing while a container or an export of ours runs; call it with the build lock held.
    """
    layout = storage.layout
    with locks.tried(layout.use_lock) as alone:
        if not alone:
            return
        for name in _runtime_containers(layout):
            command.output(["runc", "--root", str(layout.runtime_state), "delete", "--force", name])
        unmount_below(layout.scratch)
        unmount_below(layout.storage)
        shutil.rmtree(layout.scratch, ignore_errors=True)
        layout.scratch.mkdir()
        try:
            storage.output("rm", "--all")
            storage.output("images")  # fails where a layer is not known
        except ImageError as error:
            print(f"The image storage cannot be read, starting afresh ({error})", flush=True)
            remove_storage(storage)


def remove_storage(storage: Storage) -> None:
    """Delete every image and layer."""
    unmount_below(storage.layout.storage)
    shutil.rmtree(storage.layout.storage, ignore_errors=True)


def unmount_below(root: Path) -> None:
    """Unmount everything that is mounted inside `root`, innermost first."""
    for target in reversed(mounts_below(root, Path("/proc/self/mounts").read_text(encoding="utf-8"))):
        command.output(["umount", "--lazy", str(target)])


def mounts_below(root: Path, table: str) -> list[Path]:
    """The mount points inside `root`, in the order of the kernel's `table`, which writes spaces as octal escapes."""
    targets = [line.split(" ")[1].replace("\\040", " ") for line in table.splitlines()]
    return [Path(target) for target in targets if Path(target).is_relative_to(root)]


def _runtime_containers(layout: Layout) -> list[str]:
    if not layout.runtime_state.is_dir():
        return []
    return sorted(entry.name for entry in layout.runtime_state.iterdir())

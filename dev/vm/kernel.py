"""The kernel: Debian's own, out of its package, which is never installed here."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from dev.cluster.errors import ClusterError
from dev.cluster.shell import run

PACKAGE = "linux-image-amd64"  # depends on the package of the newest kernel
DOWNLOAD_SECONDS = 600
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


@dataclass(frozen=True, slots=True)
class Kernel:
    """An unpacked kernel package."""

    directory: Path

    @property
    def image(self) -> Path:
        """What the machine boots."""
        return next(self.directory.glob("boot/vmlinuz-*"))

    def with_dependencies(self, *names: str) -> tuple[Path, ...]:
        """The files of these modules and of all that they need, in the order to load them in."""
        files = {file.stem.replace("-", "_"): file for file in self.directory.glob("**/*.ko")}
        ordered: dict[str, Path] = {}

        def add(name: str) -> None:
            found = _DEPENDS.search(files[name].read_bytes())
            for needed in found[1].decode().split(",") if found and found[1] else ():
                if (key := needed.replace("-", "_")) not in ordered:
                    add(key)
            ordered[name] = files[name]

        for name in names:
            if name not in ordered:
                add(name)
        return tuple(ordered.values())


def find_kernel(cache: Path) -> Kernel:
    """The newest kernel that was fetched for a machine, fetched now if there is none. Raises ClusterError."""
    kept = cache / "kernel"
    if not (kept / "boot").is_dir():
        partial = kept.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _fetch(partial)
        shutil.rmtree(kept, ignore_errors=True)
        partial.rename(kept)
    return Kernel(kept)


def _fetch(directory: Path) -> None:
    depends = re.search(r"Depends: (linux-image-\S+)", run(["apt-cache", "depends", PACKAGE]))
    if depends is None:
        raise ClusterError(f"{PACKAGE} names no kernel: run `apt-get update`, or look at `apt-cache depends {PACKAGE}`")
    # As root, and not as apt's own user, who cannot write here.
    run(
        ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", depends[1]],
        cwd=directory,
        timeout=DOWNLOAD_SECONDS,
    )
    package = next(directory.glob("*.deb"))
    run(["dpkg-deb", "-x", package, directory])
    package.unlink()

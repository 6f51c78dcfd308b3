"""The kernel: Debian's own, out of its package, which is never installed here."""

from __future__ import annotations

import contextlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dev.cluster.errors import ClusterError
from dev.cluster.shell import run

PACKAGE = "linux-image-amd64"  # depends on the package of the newest kernel
DOWNLOAD_SECONDS = 600
UNPACKED = "unpacked"
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
    """The newest kernel of this Debian, fetched into the cache if it is not there. Raises ClusterError."""
    depends = re.search(r"Depends: (linux-image-\S+)", run(["apt-cache", "depends", PACKAGE]))
    if depends is None:
        raise ClusterError(f"{PACKAGE} names no kernel: run `apt-get update`, or look at `apt-cache depends {PACKAGE}`")
    kept = cache / "kernels" / depends[1]
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="partial-", dir=kept.parent) as scratch:
            _fetch(depends[1], Path(scratch))
            with contextlib.suppress(OSError):  # somebody else was faster
                Path(scratch, UNPACKED).rename(kept)
    return Kernel(kept)


def _fetch(package: str, directory: Path) -> None:
    # As root, and not as apt's own user, who cannot write here.
    run(
        ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package],
        cwd=directory,
        timeout=DOWNLOAD_SECONDS,
    )
    run(["dpkg-deb", "-x", next(directory.glob("*.deb")), directory / UNPACKED])

"""Python packages for the image's interpreter, kept on this machine and mounted when tests run inside an image."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from tempfile import mkdtemp

from dev.images import command
from dev.images.errors import ImageError
from dev.images.layout import IMAGE_PYTHON, REPOSITORY, default_layout

TEST_PACKAGES = REPOSITORY / "requirements" / "image-tests.txt"


def packages_for_tests() -> Path:
    """A folder with pytest and what else the tests need, to be mounted and named in PYTHONPATH."""
    return installed(TEST_PACKAGES, default_layout().packages)


def installed(requirements: Path, folder: Path) -> Path:
    """Install a pinned and hashed list once; the folder is named by the list's content."""
    key = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    target = folder / f"{requirements.stem}-{key}"
    if target.is_dir():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    partial = Path(mkdtemp(prefix="partial-", dir=folder))
    try:
        command.output([*_uv(), *install_arguments(requirements, partial)])
        partial.chmod(0o755)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def install_arguments(requirements: Path, target: Path) -> list[str]:
    """uv's arguments: wheels only, for the image's Python whatever runs here, nothing that is not in the list."""
    return [
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        f"--python-version={IMAGE_PYTHON}",
        f"--target={target}",
        f"--requirements={requirements}",
    ]


def _uv() -> list[str]:
    """uv from PATH, or where `make setup` put it."""
    own = default_layout().root.parent / "uv" / "bin" / "uv"
    found = shutil.which("uv") or (str(own) if own.exists() else None)
    if found is None:
        raise ImageError(f"uv is neither in PATH nor in {own.parent}; `make setup` installs it")
    return [found]

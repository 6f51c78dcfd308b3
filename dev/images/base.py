"""The base image, Debian's smallest, made from Debian's own packages: no registry is needed."""

from __future__ import annotations

import os
from pathlib import Path

from dev.images import command, host
from dev.images.errors import ImageError
from dev.images.layout import BASE_IMAGE, BASE_SUITE, EPOCH
from dev.images.storage import Storage

KEYRINGS = Path("/usr/share/keyrings")

# The same documents that Debian's slim images leave out.
PATHS_LEFT_OUT = ("doc/*", "groff/*", "info/*", "linda/*", "lintian/*", "locale/*", "man/*")
PATHS_KEPT = ("doc/*/copyright", "locale/locale.alias")


def ensure(storage: Storage) -> None:
    """Put the base image into the storage unless it is there."""
    local = f"localhost/{BASE_IMAGE}"
    if storage.has_image(local):
        return
    archive = storage.layout.base_archive
    if not archive.exists():
        print(f"Making {BASE_IMAGE} from Debian's packages ...", flush=True)
        bootstrap(archive, storage.layout.scratch, host.debian_mirrors())
    container = storage.output("from", "scratch")
    try:
        storage.output("add", "--quiet", container, str(archive), "/")
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        storage.output("config", "--cmd", "bash", "--env", path, container)
        storage.output("commit", "--quiet", "--timestamp", str(EPOCH), container, local)
    finally:
        storage.output("rm", container)


def bootstrap(archive: Path, scratch: Path, mirrors: host.Mirrors) -> None:
    """Write the base file system to `archive`, which appears only when it is complete."""
    for role in ("automatic", "security-automatic"):
        if not _keyring(role).exists():
            raise ImageError(
                f"{_keyring(role)}, which Debian {BASE_SUITE} is verified with, is missing; "
                "install the package debian-archive-keyring, of 2025 or newer"
            )
    partial = archive.with_suffix(".partial")
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(EPOCH), "TMPDIR": str(scratch)}
    command.stream(bootstrap_command(partial, mirrors), env=environment)
    partial.rename(archive)


def bootstrap_command(archive: Path, mirrors: host.Mirrors) -> list[str]:
    """The mmdebstrap call: the essential packages and apt, with the sources that later `apt-get` calls use."""
    suites = [(BASE_SUITE, mirrors.main, "automatic"), (f"{BASE_SUITE}-updates", mirrors.main, "automatic")]
    if mirrors.security is not None:
        suites.append((f"{BASE_SUITE}-security", mirrors.security, "security-automatic"))
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{path}" for path in PATHS_LEFT_OUT]
    kept = [f"--dpkgopt=path-include=/usr/share/{path}" for path in PATHS_KEPT]
    return [
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        "--format=tar",
        '--aptopt=Acquire::Languages "none"',
        '--aptopt=APT::Install-Recommends "false"',
        "--dpkgopt=force-unsafe-io",
        *left_out,
        *kept,
        BASE_SUITE,
        str(archive),
        *(f"deb [signed-by={_keyring(role)}] {address} {suite} main" for suite, address, role in suites),
    ]


def _keyring(role: str) -> Path:
    """Debian's public key for a role; the base image has it at the same path."""
    return KEYRINGS / f"debian-archive-{BASE_SUITE}-{role}.gpg"

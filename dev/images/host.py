"""What the building machine contributes: programs, a Debian mirror, and its way to a package index."""

from __future__ import annotations

import configparser
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from dev.images import command
from dev.images.errors import ImageError
from dev.images.layout import REPOSITORY

# Where the Dockerfiles mount the certificate authorities while pip runs.
CERTIFICATES_IN_BUILD = "/run/ca.crt"
SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

PIP_OPTIONS = ("index-url", "extra-index-url", "trusted-host", "proxy")


@dataclass(frozen=True, slots=True)
class Mirrors:
    """Repository addresses of Debian itself and of its security updates (None: the mirror has none)."""

    main: str
    security: str | None


def prepare() -> None:
    """Install the Debian packages that are missing. Needs root on Debian or Ubuntu, and says so otherwise."""
    if os.geteuid() != 0:
        raise ImageError(
            "building images without a container engine needs root on Debian or Ubuntu. "
            "With an engine: `docker build -f Dockerfile.worker .` and `docker build -f Dockerfile.operator .`"
        )
    command.stream([str(REPOSITORY / "dev" / "packages.sh"), "install"])


def debian_mirrors(env: Mapping[str, str] = os.environ) -> Mirrors:
    """The mirror that this machine's apt uses, or the one of DEBIAN_MIRROR (and DEBIAN_SECURITY_MIRROR)."""
    if mirror := env.get("DEBIAN_MIRROR"):
        return Mirrors(main=mirror, security=env.get("DEBIAN_SECURITY_MIRROR"))
    found = parse_index_targets(_index_targets())
    if found is None:  # apt knows whose a repository is only after it has read the lists once
        command.output(["apt-get", "update"])
        found = parse_index_targets(_index_targets())
    if found is None:
        raise ImageError(
            "apt on this machine has no Debian repository to take the base image from; "
            "set DEBIAN_MIRROR (and DEBIAN_SECURITY_MIRROR) to the address of one"
        )
    return found


def parse_index_targets(text: str) -> Mirrors | None:
    """Pick Debian's own repositories from lines of `origin label address`."""
    addresses: dict[str, str] = {}
    for line in text.splitlines():
        origin, label, address = line.split(" ", maxsplit=2)
        if origin == "Debian":
            addresses.setdefault(label, address.rstrip("/"))
    if "Debian" not in addresses:
        return None
    return Mirrors(main=addresses["Debian"], security=addresses.get("Debian-Security"))


def _index_targets() -> str:
    return command.output(
        ["apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages"]
    )


@contextmanager
def pip_secrets() -> Iterator[dict[str, Path]]:
    """Files for the Dockerfiles' optional secrets: this machine's pip settings and certificate authorities.

    They are mounted while pip runs and leave nothing in a layer.
    """
    certificates = certificate_file(os.environ)
    settings = pip_settings(os.environ, (Path("/etc/pip.conf"), Path.home() / ".config" / "pip" / "pip.conf"))
    if certificates is not None:
        settings["cert"] = CERTIFICATES_IN_BUILD
    with TemporaryDirectory(prefix="pip-secrets-") as folder:
        configuration = Path(folder) / "pip.conf"
        lines = [f"{name} = {value}" for name, value in settings.items()]
        configuration.write_text("\n".join(["[global]", *lines, ""]), encoding="utf-8")
        secrets = {"pipconf": configuration}
        if certificates is not None:
            secrets["ca"] = certificates
        yield secrets


def certificate_file(env: Mapping[str, str]) -> Path | None:
    """The file of certificate authorities that this machine trusts, in the order in which pip would look."""
    for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        if value := env.get(name):
            return Path(value)
    return SYSTEM_CERTIFICATES if SYSTEM_CERTIFICATES.exists() else None


def pip_settings(env: Mapping[str, str], files: tuple[Path, ...]) -> dict[str, str]:
    """How pip reaches its index from here; later files win over earlier ones, the environment over both."""
    parser = configparser.RawConfigParser()
    parser.read(files, encoding="utf-8")
    settings: dict[str, str] = {}
    for option in PIP_OPTIONS:
        variable = "PIP_" + option.upper().replace("-", "_")
        value = env.get(variable) or parser.get("install", option, fallback=parser.get("global", option, fallback=""))
        if value:
            settings[option] = " ".join(value.split())
    return settings

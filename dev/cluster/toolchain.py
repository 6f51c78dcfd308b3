"""The Go command that builds the modules: that of PATH if it is new enough, else a pinned one from the module proxy."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import re
import shutil
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path

from dev.cluster.errors import ClusterError
from dev.cluster.modules import MODULES
from dev.cluster.shell import run

VERSION = "1.26.8"
# As in a go.sum, for golang.org/toolchain (https://go.dev/ref/mod#go-sum-files): by processor.
HASHES = {
    "amd64": "h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=",
    "arm64": "h1:sYL/O6MqS68ML0kjsQ36WoYIpJqkw60TxizWUYUKQMc=",
}
PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}
EXECUTABLES = ("/bin/", "/pkg/tool/")
DOWNLOAD_SECONDS = 120


def find_go(cache: Path, say: Callable[[str], None]) -> Path:
    """The Go command; fetched into the cache (70 MB) if PATH has none that can build the modules."""
    needed = max((module.go_version for module in MODULES), key=parse)
    found = shutil.which("go")
    if found is not None:
        version = run([found, "env", "GOVERSION"], cwd=Path("/")).strip().removeprefix("go")
        if parse(version) >= parse(needed):
            return Path(found)
    return _fetched(cache, processor(), say)


def processor() -> str:
    """This machine's processor by Go's (and the images') name."""
    if platform.machine() not in PROCESSORS:
        raise ClusterError(
            f"the local cluster runs on {' and '.join(PROCESSORS)}, this machine is {platform.machine()}"
        )
    return PROCESSORS[platform.machine()]


def parse(version: str) -> tuple[int, ...]:
    """`1.26.6` as (1, 26, 6); what follows the numbers (`rc1`) is left out."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def hash_of(archive: zipfile.ZipFile) -> str:
    """The `h1:` hash of a module's zip: of the sorted list of its files' hashes and names."""
    lines = (f"{hashlib.sha256(archive.read(name)).hexdigest()}  {name}\n" for name in sorted(archive.namelist()))
    digest = hashlib.sha256("".join(lines).encode())
    return "h1:" + base64.b64encode(digest.digest()).decode()


def _proxy() -> str:
    """The Go module proxy: that of GOPROXY, or of an older Go's own configuration."""
    setting = os.environ.get("GOPROXY", "")
    found = shutil.which("go")
    if not setting and found is not None:
        setting = run([found, "env", "GOPROXY"], cwd=Path("/")).strip()
    for one in re.split("[,|]", setting):
        if one.startswith("http"):
            return one.rstrip("/")
    raise ClusterError(
        f"Go {VERSION} or newer is needed and PATH has none: install it from https://go.dev/dl, "
        "or set GOPROXY to the address of a Go module proxy, from which it is then fetched"
    )


def _fetched(cache: Path, architecture: str, say: Callable[[str], None]) -> Path:
    target = cache / f"go-{VERSION}-{architecture}"
    if (target / "bin" / "go").exists():
        return target / "bin" / "go"
    name = f"v0.0.1-go{VERSION}.linux-{architecture}"
    url = f"{_proxy()}/golang.org/toolchain/@v/{name}.zip"
    say(f"Fetching Go {VERSION} from {url}")
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    zipped = partial / "go.zip"
    try:
        with urllib.request.urlopen(url, timeout=DOWNLOAD_SECONDS) as answer, zipped.open("wb") as file:  # noqa: S310 - http(s) is checked above
            shutil.copyfileobj(answer, file)
    except OSError as error:
        raise ClusterError(f"{url}: {error}. Install Go {VERSION} from https://go.dev/dl, or set GOPROXY") from error
    with zipfile.ZipFile(zipped) as archive:
        if (found := hash_of(archive)) != HASHES[architecture]:
            raise ClusterError(
                f"{url}: its hash is {found}, expected {HASHES[architecture]}: it is not the released Go"
            )
        archive.extractall(partial)
    unpacked = partial / "golang.org" / f"toolchain@{name}"
    for path in unpacked.rglob("*"):
        if path.is_file() and any(part in str(path.relative_to(partial)) for part in EXECUTABLES):
            path.chmod(0o755)  # the proxy's zip files carry no modes
    unpacked.rename(target)
    shutil.rmtree(partial)
    return target / "bin" / "go"

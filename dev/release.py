"""`make release-check`: whether this tree can be released. One line for each check; ends with 1 where one fails."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import yaml

from cosyvoice_worker._version import __version__
from dev import generate

ROOT = Path(__file__).parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?")
# Licences that ask nothing of who uses or ships the images but a notice, or the source of that library alone.
PERMISSIVE = re.compile(
    r"apache|mit\b|bsd|isc\b|psf|python software|zlib|unlicense|mpl|mozilla|lgpl|cmu|public domain", re.I
)
FORBIDDEN = re.compile(r"(?<!l)gpl|affero|proprietary|commercial", re.I)


def problems_of_the_version(version: str, root: Path) -> Iterator[str]:
    """The version in one place: what else names it says the same."""
    if not VERSION.fullmatch(version):
        yield f"{version!r} is no version to release: expected such as 1.2.3 or 1.2.3-rc.1"
    chart = yaml.safe_load((root / "charts" / "cosyvoice" / "Chart.yaml").read_text())
    for field in ("version", "appVersion"):
        if str(chart[field]) != version:
            yield f"Chart.yaml has {field} {chart[field]}, the package {version}: `make generate`"
    for page in ("docs/install.md", "examples/narrator-full.yaml"):
        for tag in sorted(
            set(re.findall(r"/cosyvoice-(?:operator|worker):(\S+)", (root / page).read_text())) - {version}
        ):
            yield f"{page} names images of {tag}, not of {version}"


def problems_of_the_changelog(version: str, text: str) -> Iterator[str]:
    """A dated section for the version, with something in it."""
    section = re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$(.*?)(?=^## |\Z)", text, re.M | re.S)
    if section is None:
        yield f"CHANGELOG.md has no `## {version} - YYYY-MM-DD`: rename `## Unreleased`"
    elif not re.search(r"^- ", section[1], re.M):
        yield f"CHANGELOG.md says nothing under {version}"


def problems_of_the_tree(status: str) -> Iterator[str]:
    """`status` is what `git status --porcelain` says."""
    for line in status.splitlines():
        yield f"not committed: {line[3:]}"


def problems_of_generated_files() -> Iterator[str]:
    """What `make generate` would write is what stands there."""
    for path, text in generate.generated().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield f"{path.relative_to(ROOT)} is out of date: `make generate`"


def problems_of_licences(packages: dict[str, str]) -> Iterator[str]:
    """`packages`: the licence that each says it has."""
    for name, licence in sorted(packages.items()):
        if not PERMISSIVE.search(licence) or FORBIDDEN.search(licence):
            yield f"{name} is under {licence[:60] or 'no licence that it names'!r}: look at it before it is shipped"


def licences(requirements: Path) -> dict[str, str]:
    """The licence of each pinned package that is installed here."""
    found = {}
    for name in re.findall(r"^([A-Za-z0-9._-]+)==", requirements.read_text(), re.M):
        try:
            about = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue  # of another platform or Python
        classifiers = [one for one in about.get_all("Classifier") or () if one.startswith("License")]
        found[name] = " ".join(
            [*(about.get_all("License-Expression") or about.get_all("License") or ()), *classifiers]
        ).strip()
    return found


def main() -> None:
    """Run every check and tell all problems."""
    git = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    pinned = [ROOT / "requirements" / f"{kind}.txt" for kind in ("operator", "worker-image")]
    checks: dict[str, Callable[[], Iterator[str]]] = {
        "tree clean": lambda: problems_of_the_tree(git),
        "one version": lambda: problems_of_the_version(__version__, ROOT),
        "changelog": lambda: problems_of_the_changelog(__version__, changelog),
        "generated files": problems_of_generated_files,
        "licences": lambda: problems_of_licences({k: v for path in pinned for k, v in licences(path).items()}),
    }
    failed = False
    for name, check in checks.items():
        found = list(check())
        failed |= bool(found)
        print(f"{'FAIL' if found else 'ok  '}  {name}", *(f"      {problem}" for problem in found), sep="\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()

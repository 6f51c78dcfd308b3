"""The Go modules, and the keys under which their binaries are kept."""

from __future__ import annotations

import dataclasses
import io
import re
import zipfile

import pytest

from dev.cluster import modules, toolchain
from dev.cluster.modules import MODULES, Module


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_every_module_says_which_go_it_needs(module: Module) -> None:
    assert toolchain.parse(module.go_version) <= toolchain.parse(toolchain.VERSION)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_every_dependency_is_pinned_by_its_hash(module: Module) -> None:
    required = re.findall(r"^\s+(\S+ v\S+)", (module.directory / "go.mod").read_text(), re.MULTILINE)

    assert not required or (module.directory / "go.sum").exists()


def test_other_flags_mean_other_binaries() -> None:
    other = dataclasses.replace(modules.PAUSE, flags=("-race",))

    assert other.key != modules.PAUSE.key


def test_versions_that_are_stamped_are_those_that_are_built() -> None:
    kubernetes = (modules.KUBERNETES.directory / "go.mod").read_text()
    containerd = (modules.CONTAINERD.directory / "go.mod").read_text()

    assert re.search(rf"k8s\.io/kubernetes {re.escape(modules.KUBERNETES_VERSION)}( |$)", kubernetes, re.MULTILINE)
    assert f"github.com/containerd/containerd/v2 v{modules.CONTAINERD_VERSION}" in containerd


@pytest.mark.parametrize(
    ("version", "parsed"),
    [("1.26.6", (1, 26, 6)), ("1.19", (1, 19)), ("1.27rc1", (1, 27)), ("devel", ())],
)
def test_go_versions_are_compared_by_number(version: str, parsed: tuple[int, ...]) -> None:
    assert toolchain.parse(version) == parsed


def test_the_hash_of_a_module_is_that_of_go_sum() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("example.test/empty@v1.0.0/go.mod", "module example.test/empty\n")

    with zipfile.ZipFile(buffer) as archive:
        # What golang.org/x/mod/sumdb/dirhash says of the same file.
        assert toolchain.hash_of(archive) == "h1:I80bORlVJd6jAyoX0aRUEgdVWqIHhhd0BuMUBSJoUd0="

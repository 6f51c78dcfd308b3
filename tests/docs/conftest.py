"""Fixtures: a clone of the tree, a reader in it, and the local cluster for what he does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dev import helm
from dev.cluster import registry
from dev.demo import source, target
from dev.demo.target import Target
from dev.models import tiny
from tests.docs import steps
from tests.docs.reader import Reader, clone, connects, programs
from tests.docs.scenes import WORDS
from tests.docs.stage import NAMESPACE, Stage, copies


@pytest.fixture(scope="session")
def models() -> tuple[Path, Path, Path]:
    """Two small models that sound differently, and a recording."""
    first, recording = source.make_tiny(registry.default_cache() / "tests")
    second = first.parent / f"{first.name}-{tiny.OTHER_TAKES[0]}"
    if not (second / "hift.pt").exists():
        tiny.write(second, take=tiny.OTHER_TAKES[0])
    return first, second, recording


@pytest.fixture(scope="session")
def reader(models: tuple[Path, Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A reader in his clone, in which lie a model, as he has downloaded it, and recordings."""
    cluster: Target = target.find_local()
    folder = clone(tmp_path_factory.mktemp("clone"))
    model, _, recording = models
    (folder / source.TINY_NAME).symlink_to(model)
    for name in ("me.wav", "ann.wav", "prompt.wav"):
        (folder / name).write_bytes(recording.read_bytes())
    place = tmp_path_factory.mktemp("programs") / "bin"
    environment = programs(place, Path(cluster.kubectl.program), helm.find().program)
    kubeconfig = yaml.safe_load(cluster.kubectl.kubeconfig.read_text())
    for context in kubeconfig["contexts"]:
        context["context"]["namespace"] = NAMESPACE
    (place / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    found = Reader(folder, {**environment, "KUBECONFIG": str(place / "kubeconfig")}, dict(WORDS))
    connects(found, {})
    return found


@pytest.fixture(scope="session")
def stage(reader: Reader, models: tuple[Path, Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The local cluster. What other tests have in it goes; in the end it is empty."""
    first, second, _ = models
    weights = copies(
        tmp_path_factory.mktemp("weights"), {source.TINY_NAME: first, f"{source.TINY_NAME}-v1.3.0": second}
    )
    found = Stage(target.find_local(), reader, weights, steps.install)
    yield found
    found.empty(wait=False)

"""How built images are named, and where that is remembered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev.images import references
from dev.images.errors import ImageError

ID = "3f9a1c0b7d20" + "0" * 52
OTHER_ID = "a" * 64

# What a registry accepts: https://github.com/opencontainers/distribution-spec, "Pulling manifests".
TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")


def test_the_tag_tells_the_version_and_the_content() -> None:
    image = references.image("worker", "0.1.0", ID)

    assert image.reference == "localhost/cosyvoice-worker:0.1.0-3f9a1c0b7d20"
    assert image.name == "cosyvoice-worker"


def test_other_content_has_another_reference() -> None:
    first = references.image("worker", "0.1.0", ID)
    second = references.image("worker", "0.1.0", OTHER_ID)

    assert first.reference != second.reference


@pytest.mark.parametrize("registry", ["registry.example.com/team", "registry.example.com/team/"])
def test_a_registry_takes_the_place_of_localhost(registry: str) -> None:
    image = references.image("operator", "0.1.0", ID, registry)

    assert image.reference == "registry.example.com/team/cosyvoice-operator:0.1.0-3f9a1c0b7d20"


@given(
    st.from_regex(
        r"[0-9]{1,3}(\.[0-9]{1,3}){2}(rc[0-9])?(\.dev[0-9])?(\+[a-z0-9]{1,9}(\.[a-z0-9]{1,9})?)?", fullmatch=True
    )
)
def test_every_version_of_a_distribution_makes_a_valid_tag(version: str) -> None:
    tag = references.image("worker", version, ID).reference.rsplit(":", maxsplit=1)[1]

    assert TAG.fullmatch(tag)


def test_what_was_built_is_read_back(tmp_path: Path) -> None:
    operator = references.image("operator", "0.1.0", ID)
    worker = references.image("worker", "0.1.0", OTHER_ID)

    references.write(tmp_path / "references.json", {"operator": operator, "worker": worker})

    assert references.read(tmp_path / "references.json") == references.References(operator=operator, worker=worker)


def test_building_one_image_keeps_the_other_one_known(tmp_path: Path) -> None:
    path = tmp_path / "references.json"
    operator = references.image("operator", "0.1.0", ID)
    references.write(path, {"operator": operator, "worker": references.image("worker", "0.1.0", ID)})
    newer = references.image("worker", "0.1.0", OTHER_ID)

    references.write(path, {"worker": newer})

    assert references.read(path) == references.References(operator=operator, worker=newer)


def test_an_image_that_was_never_built_is_named(tmp_path: Path) -> None:
    references.write(tmp_path / "references.json", {"operator": references.image("operator", "0.1.0", ID)})

    with pytest.raises(ImageError, match=r"not built yet: worker\. `make images`"):
        references.read(tmp_path / "references.json")


@pytest.mark.parametrize("content", ["{", '{"worker": {"name": 1}}'], ids=["cut off", "other fields"])
def test_an_unreadable_record_says_how_to_get_a_new_one(tmp_path: Path, content: str) -> None:
    path = tmp_path / "references.json"
    path.write_text(content)

    with pytest.raises(ImageError, match=r"references\.json cannot be read .*; delete it and run `make images`"):
        references.read(path)

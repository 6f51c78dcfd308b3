"""Sizes as buildah tells them."""

from __future__ import annotations

import pytest

from dev.images.errors import ImageError
from dev.images.weight import Weight, parse_size


@pytest.mark.parametrize(
    ("text", "size"), [("664 MB", 664_000_000), ("1.02 GB", 1_020_000_000), ("80.9 MB", 80_900_000), ("512 B", 512)]
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "664", "664 MiB", "many MB"])
def test_a_size_that_cannot_be_read_is_told(text: str) -> None:
    with pytest.raises(ImageError, match="expected a number and one of B, KB, MB, GB"):
        parse_size(text)


def test_a_weight_is_told_in_megabytes() -> None:
    weighed = Weight(unpacked=664_000_000, packed=211_600_000, layers=3)

    assert str(weighed) == "664 MB unpacked, 212 MB compressed, 3 layers"

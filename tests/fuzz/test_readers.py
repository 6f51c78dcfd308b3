"""No bytes make a reader crash, hang or ask for memory without bound: what it cannot read it refuses in its own way.

`make fuzz` does the same for as long as one likes. What it finds becomes a test beside the reader's others.
"""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.cluster import registry
from dev.demo import source
from dev.fuzz.mutation import variants
from dev.fuzz.readers import Reader, readers

VARIANTS = 1000
NAMES = (
    "checkpoint",
    "pickle",
    "safetensors",
    "inspected-checkpoint",
    "inspected-pack",
    "manifest",
    "yaml",
    "backbone",
    "vocabulary",
    "merges",
    "added-tokens",
    "voice-pack",
    "recording",
    "request",
    "model-json",
    "order",
    "engine-message",
    "termination-message",
    "worker-status",
    "live-document",
)
# The yaml is a page long and parsed in Python.
SLOW = frozenset({"yaml", "backbone"})


@pytest.fixture(scope="module")
def table() -> Iterator[dict[str, Reader]]:
    model, _recording = source.make_tiny(registry.default_cache() / "tests")
    with tempfile.TemporaryDirectory() as folder:
        yield readers(model, Path(folder))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", NAMES)
def test_whatever_the_bytes_a_reader_reads_them_or_refuses(name: str, table: dict[str, Reader]) -> None:
    reader = table[name]
    for seed in reader.seeds:
        reader.read(seed)
    refused = 0
    for number, content in enumerate(
        itertools.islice(variants(reader.seeds, 7), VARIANTS // 10 if name in SLOW else VARIANTS)
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                reader.read(content)
            except reader.refusals:
                refused += 1
            except BaseException as fault:
                fault.add_note(f"variant {number} of {name}: {content[:200]!r}")
                raise
    assert refused or not reader.refusals


def test_every_reader_is_fuzzed(table: dict[str, Reader]) -> None:
    assert set(NAMES) == set(table)

"""The manifest is a text whose digest names the version."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_worker.staging.manifest import Entry, Manifest

A, B = "a" * 64, "b" * 64

entries = st.builds(
    Entry,
    path=st.from_regex(r"[A-Za-z0-9][\w./-]{0,30}", fullmatch=True).filter(lambda path: ".." not in path.split("/")),
    size=st.integers(0, 2**40),
    sha256=st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
)


def test_text_lists_files_by_path_and_the_digest_is_its_sha256():
    manifest = Manifest.of([Entry("llm.pt", 20, B), Entry("flow.pt", 3, A)])

    assert manifest.text == f"schema: 1\n{A}  3  flow.pt\n{B}  20  llm.pt\n"
    assert manifest.digest == "sha256:" + hashlib.sha256(manifest.text.encode()).hexdigest()
    assert manifest.bytes == 23


@given(st.lists(entries, max_size=8))
def test_text_is_read_back_as_the_same_manifest(content):
    manifest = Manifest.of(content)

    assert Manifest.parse(manifest.text) == manifest


@given(st.permutations([Entry("a", 1, A), Entry("b/c", 2, A), Entry("d", 3, B)]))
def test_digest_does_not_depend_on_the_order_of_copying(content):
    assert Manifest.of(content).digest == Manifest.of([Entry("a", 1, A), Entry("b/c", 2, A), Entry("d", 3, B)]).digest


@pytest.mark.parametrize(
    "text",
    [
        "",
        "schema: 2\n",
        f"{A}  3  flow.pt\n",
        f"schema: 1\n{A} 3 flow.pt\n",
        f"schema: 1\n{A[:-1]}  3  flow.pt\n",
        f"schema: 1\n{A}  3  flow.pt",
        f"schema: 1\n{A}  03  flow.pt\n",
        f"schema: 1\n{A}  3  /etc/passwd\n",
        f"schema: 1\n{A}  3  voices/../../../etc/passwd\n",
    ],
)
def test_any_other_text_is_no_manifest(text):
    with pytest.raises(ValueError, match="not a manifest of schema 1"):
        Manifest.parse(text)

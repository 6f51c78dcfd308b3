"""The grammar of spec.source.uri."""

from __future__ import annotations

import pytest

from cosyvoice_operator import source
from cosyvoice_operator.errors import InvalidSpecError
from cosyvoice_operator.source import ClaimSource, HostPathSource


@pytest.mark.parametrize(
    ("uri", "expected", "path_in_pod"),
    [
        ("pvc://voices/CosyVoice2-0.5B", ClaimSource("voices", "CosyVoice2-0.5B"), "/source/CosyVoice2-0.5B"),
        ("pvc://voices/a/b_c/d@1+2=3/", ClaimSource("voices", "a/b_c/d@1+2=3"), "/source/a/b_c/d@1+2=3"),
        ("pvc://voices", ClaimSource("voices", ""), "/source"),
        ("pvc://my.claim-1/", ClaimSource("my.claim-1", ""), "/source"),
        ("hostpath:///srv/models/v2", HostPathSource("/srv/models/v2"), "/source"),
        ("hostpath:///srv/models/v2/", HostPathSource("/srv/models/v2"), "/source"),
    ],
)
def test_a_uri_names_a_directory(uri: str, expected: source.Source, path_in_pod: str) -> None:
    parsed = source.parse(uri)

    assert parsed == expected
    assert parsed.path_in_pod == path_in_pod


@pytest.mark.parametrize(
    "uri",
    [
        "", "voices/model", "s3://bucket/model", "pvc:/voices", "pvc:///model", "pvc://Voices", "pvc://-voices",
        "pvc://voices//model", "pvc://voices/a b", "pvc://voices/a\n", "hostpath://srv/models", "hostpath:///",
        "hostpath:////srv", "PVC://voices", "pvc://voices/mödel",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_the_two_forms(uri: str) -> None:
    with pytest.raises(InvalidSpecError, match=r"is neither pvc://CLAIM\[/PATH\] nor hostpath:///PATH"):
        source.parse(uri)


@pytest.mark.parametrize("uri", ["pvc://voices/../x", "pvc://voices/a/./b", "hostpath:///srv/..", "pvc://../a"])
def test_dots_are_refused(uri: str) -> None:
    with pytest.raises(InvalidSpecError, match=r"has a segment '\.' or '\.\.'"):
        source.parse(uri)


@pytest.mark.parametrize(
    ("uri", "allowed", "verdict"),
    [
        ("pvc://voices", (), True),
        ("hostpath:///srv/models", (), False),
        ("hostpath:///srv/models", ("/srv",), True),
        ("hostpath:///srv/models", ("/srv/models",), True),
        ("hostpath:///srv/models-of-others", ("/srv/models",), False),
        ("hostpath:///srv", ("/srv/models",), False),
        ("hostpath:///srv/models", ("/data", "/"), True),
    ],
)
def test_directories_of_nodes_need_the_administrators_leave(uri: str, allowed: tuple[str, ...], verdict: bool) -> None:
    assert source.is_allowed(source.parse(uri), allowed) is verdict

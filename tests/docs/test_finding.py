"""What counts as something to type, and which output belongs to which command."""

from __future__ import annotations

import textwrap

import pytest

from tests.docs import output
from tests.docs.pages import Snippet, pages, snippets


def found(text: str) -> list[Snippet]:
    return snippets("page.md", textwrap.dedent(text))


def test_every_page_is_looked_at() -> None:
    listed = pages()

    assert {"README.md", "CONTRIBUTING.md", "SECURITY.md", "charts/cosyvoice/README.md", "docs/install.md"} <= {*listed}


def test_blocks_are_found_in_lists_too_and_without_their_indent() -> None:
    (block,) = found("* one\n\n  ```sh\n  make demo \\\n      X=1\n  ```\n")

    assert (block.line, block.language, block.text) == (3, "sh", "make demo \\\n    X=1\n")


def test_a_block_without_a_language_that_has_a_prompt_is_a_console() -> None:
    (block,) = found("```\n$ kubectl get cvm\nNAME\n```\n")

    assert block.language == "console"


def test_commands_between_the_words_are_found_across_lines_and_other_code_is_not() -> None:
    spans = found("Look: `kubectl -n\nspeech get pods`, `spec.source`, `kubectl`, `maker of things`.\n")

    assert [(one.line, one.language, one.text) for one in spans] == [(1, "inline", "kubectl -n speech get pods")]


def test_what_stands_right_below_commands_is_their_output_and_what_stands_after_words_is_not() -> None:
    below = found('```sh\nls\n```\n\n```json\n{"a": 1}\n```\n')
    after = found('```sh\nls\n```\n\nAnd so:\n\n```json\n{"a": 1}\n```\n')

    assert [one.output for one in below] == ['{"a": 1}\n']
    assert [one.language for one in after] == ["sh", "json"]


def test_a_console_is_commands_with_what_came() -> None:
    console = "$ kubectl get cvm\nNAME\nnarrator\n$ kubectl scale cvm narrator \\\n  --replicas=1\nscaled\n"

    assert output.typed(console) == [
        ("kubectl get cvm", "NAME\nnarrator\n"),
        ("kubectl scale cvm narrator \\\n  --replicas=1", "scaled\n"),
    ]


@pytest.mark.parametrize(
    ("shown", "came"),
    [
        ("narrator-69bbc7bd67-8gwcc   1/1   Running   0   23s", "narrator-5b656d4484-7fpwd   1/1  Running   0   2m1s"),
        ("narrator-127d7d4fce   2      108s   v1.2.0", "narrator-aaaaaaaaaa   2      9s   v1.2.0"),
        ("absent, pod narrator-77b54f9f76-7d78v, node node1", "absent,  pod narrator-77b54f9f76-bcdfg, node node2"),
        ("59131631 bytes in 0.2 s", "1 bytes in 12 s"),
        ("Warning  RollingBack  1s   operator", "Warning  RollingBack  9s (x2 over 12s)   operator"),
        ("Pinned   2m30s   127d7d4fce   12     v1.2.0 serves", "Pinned   9s   aaaaaaaaaa   4     v1.2.0 serves"),
    ],
)
def test_what_is_another_each_time_is_not_compared(shown: str, came: str) -> None:
    assert output.stable(shown) == output.stable(came)


def test_lines_have_to_come_in_the_order_shown_and_an_ellipsis_stands_for_any() -> None:
    assert output.missing("a\n…\nc\n", "a\nb\nc\n") is None
    assert output.missing("a\nc …\n", "a\nb\nc and more\n") is None
    assert output.missing("c\na\n", "a\nb\nc\n") == "a"
    assert output.missing("Normal 1s B\nWarning 1s A\n", "Warning 2s A\nNormal 2s B\n") is None
    assert output.missing("v1.2.0 Ready", "v1.2.0 RolledBack") == "v1.2.0 Ready"


def test_an_object_has_the_fields_shown_and_may_have_more() -> None:
    assert (
        output.differing(
            '{"reason": "X", "pod": "n-77b54f9f76-7d78v"}', '{"reason": "X", "pod": "n-77b54f9f76-bcdfg", "y": 1}'
        )
        is None
    )
    assert output.differing('{"reason": "X"}', '{"reason": "Z"}') == "reason: X"

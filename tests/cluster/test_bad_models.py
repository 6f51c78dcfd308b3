"""Model directories that are bad: what `kubectl get cvm -o json` then says, word for word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from cosyvoice_worker.outcome import Reason
from dev.playground import Playground
from tests.cluster.failing import NO_PREVIOUS_VERSION, NOTHING_TO_GO_BACK_TO, condition_statuses, status_with_a_failure


@dataclass(frozen=True)
class Case:
    """A fault of the kit, and how the status tells it. `details` are those that the message leaves out."""

    fault: str
    reason: Reason
    message: str
    file: str | None = None
    tensor: str | None = None
    expected: str | None = None
    actual: str | None = None
    details: str = ""


CASES = [
    Case(
        "truncated-file",
        Reason.TRUNCATED_FILE,
        "flow.pt ends before its zip directory: the file is cut off, copy it again",
        file="flow.pt",
        expected="a zip directory at the end",
        actual="28372917 bytes without one",
        details="expected a zip directory at the end, actual 28372917 bytes without one, ",
    ),
    Case(
        "lfs-pointer",
        Reason.LFS_POINTER,
        "llm.pt is a git-lfs pointer, not the file: run `git lfs pull` in the clone and copy the directory again",
        file="llm.pt",
        expected="1872313 bytes",
        actual="a pointer of 132 bytes",
        details="expected 1872313 bytes, actual a pointer of 132 bytes, ",
    ),
    Case(
        "missing-file",
        Reason.MISSING_FILE,
        "hift.pt missing in /source/bad/missing-file: a CosyVoice2 directory has cosyvoice2.yaml, llm.pt, flow.pt, "
        "hift.pt, CosyVoice-BlankEN/config.json, CosyVoice-BlankEN/vocab.json, CosyVoice-BlankEN/merges.txt, "
        "CosyVoice-BlankEN/tokenizer_config.json",
        file="hift.pt",
    ),
    Case(
        "unknown-version",
        Reason.UNKNOWN_VERSION,
        "/source/bad/unknown-version holds cosyvoice9.yaml: this worker runs CosyVoice2 models only, whose yaml is "
        "cosyvoice2.yaml",
        file="cosyvoice9.yaml",
        expected="cosyvoice2.yaml",
        actual="cosyvoice9.yaml",
    ),
    Case(
        "missing-tensor",
        Reason.MISSING_TENSOR,
        "flow.pt lacks the tensor encoder.after_norm.weight: is it of the same model as the directory's yaml?",
        file="flow.pt",
        tensor="encoder.after_norm.weight",
        expected="tensor encoder.after_norm.weight",
        actual="absent",
        details="actual absent, ",
    ),
    Case(
        "unexpected-tensor",
        Reason.UNEXPECTED_TENSOR,
        "hift.pt has a tensor stranger.weight that this model does not have",
        file="hift.pt",
        tensor="stranger.weight",
        expected="absent",
        actual="tensor stranger.weight",
        details="expected absent, ",
    ),
    Case(
        "wrong-shape",
        Reason.SHAPE_MISMATCH,
        "llm.pt: llm_embedding.weight has the shape [2, 31], the model needs [2, 32]",
        file="llm.pt",
        tensor="llm_embedding.weight",
        expected="[2, 32]",
        actual="[2, 31]",
    ),
    Case(
        "unknown-class",
        Reason.INCOMPATIBLE_MODEL,
        "cosyvoice2.yaml: llm should be Qwen2LM, but is 'CosyVoice9LM'",
        file="cosyvoice2.yaml",
        expected="llm: Qwen2LM",
        actual="llm: CosyVoice9LM",
        details="expected llm: Qwen2LM, actual llm: CosyVoice9LM, ",
    ),
    Case(
        "nan-weight",
        Reason.NON_FINITE_AUDIO,
        "warm-up of 'Hello, this is a warm-up.' with the built-in voice, not streaming: the model gave samples that "
        "are no numbers: its weights are damaged, or its dtype is too narrow",
        expected="finite samples",
        actual="NaN or infinity",
        details="expected finite samples, actual NaN or infinity, ",
    ),
    Case(
        "silent-audio",
        Reason.SILENT_AUDIO,
        "warm-up of 'Hello, this is a warm-up.' with voice 'rehearsal', not streaming: the audio is silent",
        expected="a peak of at least 0.001",
        actual="0.0",
        details="expected a peak of at least 0.001, actual 0.0, ",
    ),
]

RARE = {"unknown-class", "nan-weight", "silent-audio"}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.fault, marks=pytest.mark.long if case.fault in RARE else ()) for case in CASES],
)
def test_a_bad_model_is_told_word_for_word(
    shared_playground: Playground, bad_path: Callable[[str], str], case: Case
) -> None:
    shared_playground.apply_model(case.fault, path=bad_path(case.fault))

    status = status_with_a_failure(shared_playground, case.fault)

    newest = status["failures"][0]
    message = f"{case.message} ({case.details}pod {newest['pod']}, node {newest['node']})"
    assert newest["pod"].startswith(case.fault)
    assert newest["node"] in {"node1", "node2"}
    assert without_place_and_time(newest) == {
        "version": "v1",
        "revision": status["targetRevision"],
        "reason": case.reason,
        "message": message,
        **present(file=case.file, tensor=case.tensor, expected=case.expected, actual=case.actual),
    }
    assert (status["reason"], status["message"]) == (NO_PREVIOUS_VERSION, f"v1: {message}{NOTHING_TO_GO_BACK_TO}")
    assert condition_statuses(status) == {
        "Ready": "False",
        "Available": "False",
        "Progressing": "False",
        "Stalled": "True",
        "Degraded": "True",
    }


def without_place_and_time(failure: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in failure.items() if key not in {"pod", "node", "time"}}


def present(**fields: str | None) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value is not None}

"""Manifests that the API server refuses, in the words that `kubectl apply` prints."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

import pytest

from dev.kubectl import Kubectl, KubectlError

GOOD: dict[str, Any] = {
    "apiVersion": "cosyvoice.dev/v1alpha1",
    "kind": "CosyVoiceModel",
    "metadata": {"name": "narrator", "namespace": "default"},
    "spec": {"version": "v1", "source": {"uri": "pvc://voices/CosyVoice2-0.5B"}},
}
QUANTITY = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class Case:
    """`spec` is laid over that of a good manifest; `refusal` is how kubectl's words end."""

    name: str
    spec: dict[str, Any]
    refusal: str


CASES = [
    Case(
        "an unknown field",
        {"wrker": {"replicas": 1}},
        'CosyVoiceModel in version "v1alpha1" cannot be handled as a CosyVoiceModel: '
        'strict decoding error: unknown field "spec.wrker"',
    ),
    Case(
        "an unknown field further down",
        {"engine": {"warmUp": {"text": "Hello."}}},
        'CosyVoiceModel in version "v1alpha1" cannot be handled as a CosyVoiceModel: '
        'strict decoding error: unknown field "spec.engine.warmUp.text"',
    ),
    Case(
        "a bad quantity",
        {"staging": {"sizeLimit": "8 GB"}},
        'The CosyVoiceModel "narrator" is invalid: spec.staging.sizeLimit: Invalid value: "8 GB": '
        f"spec.staging.sizeLimit in body should match '{QUANTITY}'",
    ),
    Case(
        "a bad quantity among the resources",
        {"worker": {"resources": {"limits": {"memory": "8Gib"}}}},
        'The CosyVoiceModel "narrator" is invalid: spec.worker.resources.limits.memory: Invalid value: "8Gib": '
        f"spec.worker.resources.limits.memory in body should match '{QUANTITY}'",
    ),
    Case(
        "a source of an unknown kind",
        {"source": {"uri": "ftp://voices/CosyVoice2-0.5B"}},
        'The CosyVoiceModel "narrator" is invalid: spec.source.uri: Invalid value: "ftp://voices/CosyVoice2-0.5B": '
        "source.uri must be pvc://CLAIM[/PATH] or hostpath:///PATH",
    ),
    Case(
        "a source that leaves its claim",
        {"source": {"uri": "pvc://voices/../secrets"}},
        'The CosyVoiceModel "narrator" is invalid: spec.source.uri: Invalid value: "pvc://voices/../secrets": '
        "source.uri must not have a segment '.' or '..'",
    ),
    Case(
        "half precision on a cpu",
        {"engine": {"device": "cpu", "dtype": "float16"}},
        'The CosyVoiceModel "narrator" is invalid: spec.engine: Invalid value: '
        "engine.dtype float16 needs engine.device cuda: on a cpu use auto, float32 or bfloat16",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kubectl_says_what_is_wrong(kubectl: Kubectl, operator: None, case: Case) -> None:
    manifest = copy.deepcopy(GOOD)
    manifest["spec"].update(case.spec)

    with pytest.raises(KubectlError) as refused:
        kubectl.run("apply", "-f", "-", stdin=json.dumps(manifest))

    assert str(refused.value).endswith(case.refusal)
    assert kubectl.get("-n", "default", "cosyvoicemodel", "narrator") is None


def test_the_manifest_that_the_others_vary_is_good(kubectl: Kubectl, operator: None) -> None:
    said = kubectl.run("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(GOOD))

    assert said == "cosyvoicemodel.cosyvoice.dev/narrator created (server dry run)\n"

"""The ConfigMap that carries a voice to a running model."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import kubernetes_validate
import pytest

from cosyvoice_worker.voices import pack
from cosyvoice_worker.voices.configmap import Target, manifest
from cosyvoice_worker.voices.errors import VoiceError
from cosyvoice_worker.voices.pack import Pack


def test_the_manifest_holds_the_pack_under_the_voice_s_file_name(ann: Pack) -> None:
    configmap = json.loads(manifest(Target("narrator", "speech"), "ann", ann))

    kubernetes_validate.validate(configmap, "1.31", strict=True)
    assert configmap["metadata"] == {"name": "narrator-voices", "namespace": "speech"}
    (name, data), *others = configmap["binaryData"].items()
    assert (name, others) == ("ann.safetensors", [])
    assert pack.decode(base64.b64decode(data), name) == ann


def test_the_namespace_is_left_to_kubectl_unless_given(ann: Pack) -> None:
    assert json.loads(manifest(Target("narrator"), "ann", ann))["metadata"] == {"name": "narrator-voices"}


def test_two_of_the_longest_voices_fit_a_configmap(ann: Pack) -> None:
    longest = replace(ann, prompt_token=bytes(4 * 750), prompt_mel=bytes(4 * 1500 * 80))

    assert 2 * len(pack.encode(longest)) < 1024 * 1024


@pytest.mark.parametrize("name", ["", "Narrator", "-a", "a-", "1a", "a" * 64, "a.b", "a\nb"])
def test_a_name_that_is_no_model_s_is_refused(name: str) -> None:
    with pytest.raises(VoiceError, match=r"^--configmap: expected the name of a CosyVoiceModel, got "):
        Target(name)


def test_a_name_that_is_no_namespace_s_is_refused() -> None:
    with pytest.raises(VoiceError, match=r"^--namespace: expected the name of a namespace, got 'a/b'"):
        Target("narrator", "a/b")

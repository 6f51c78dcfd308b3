"""model.json is read whole or refused with everything that is wrong with it."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from cosyvoice_worker.outcome import Phase, Reason, WorkerError
from cosyvoice_worker.settings import parse_settings, read_settings

DIGEST = "sha256:" + "0a" * 32

# The example of docs/architecture.md.
DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "namespace": "speech",
    "model": "narrator",
    "version": "v1.2.0",
    "revision": "3f9a1c0b7d",
    "source": {"uri": "pvc://voices/CosyVoice2-0.5B", "path": "/source/CosyVoice2-0.5B", "digest": None},
    "staging": {"sizeLimitBytes": 8589934592, "verify": "Once"},
    "engine": {
        "device": "cpu",
        "dtype": "auto",
        "loadTimeoutSeconds": 600,
        "preload": True,
        "fallbackToCPU": False,
        "warmUp": {"texts": ["Hello, this is a warm-up."], "voice": None, "maxSeconds": 1.0},
    },
}


def changed(path: str, value: object) -> bytes:
    """The example with the field at `path` set, or removed where `value` is ...."""
    document = deepcopy(DOCUMENT)
    *parents, name = path.split(".")
    section = document
    for parent in parents:
        section = section[parent]
    if value is ...:
        del section[name]
    else:
        section[name] = value
    return json.dumps(document).encode()


def test_the_documented_example_is_read():
    settings = parse_settings(json.dumps(DOCUMENT).encode(), Phase.STAGE)

    assert (settings.namespace, settings.model, settings.revision) == ("speech", "narrator", "3f9a1c0b7d")
    assert (settings.source.path, settings.source.digest) == ("/source/CosyVoice2-0.5B", None)
    assert (settings.staging.size_limit_bytes, settings.staging.verify) == (2**33, "Once")
    assert (settings.engine.load_timeout_seconds, settings.engine.fallback_to_cpu) == (600, False)
    assert settings.engine.warm_up.texts == ["Hello, this is a warm-up."]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("source.digest", DIGEST),
        ("source.digest", ...),
        ("staging.verify", "Always"),
        ("engine.dtype", "bfloat16"),
        ("engine.warmUp.voice", "anna"),
        ("engine.warmUp.maxSeconds", 1),
        ("engine.device", "cuda"),
    ],
)
def test_what_is_allowed(path, value):
    parse_settings(changed(path, value), Phase.STAGE)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("schema", 2, "schema: expected 1, got 2; the operator and the worker image are of different releases"),
        ("model", "", "model: expected `str` of length >= 1"),
        ("revision", ..., "revision: missing"),
        ("colour", "red", "colour: unknown field (known: schema, namespace, model, version, revision, source, "),
        ("source", "pvc://a", "source: expected an object, got a string"),
        ("source.digest", "sha256:XY", "source.digest: expected `str` matching regex '^sha256:[0-9a-f]{64}\\\\Z'"),
        ("source.digest", f"sha256:{'0' * 64}\n", "source.digest: expected `str` matching regex"),
        ("revision", "3f9a1c0b7d\n", "revision: expected `str` matching regex '^[a-z0-9]{1,63}\\\\Z'"),
        ("source.path", "/source/a\0b", "source.path: expected `str` matching regex"),
        ("source.sha", "x", "source.sha: unknown field (known: uri, path, digest)"),
        ("staging.sizeLimitBytes", "8Gi", "staging.sizeLimitBytes: expected `int`, got `str`"),
        ("staging.sizeLimitBytes", 0, "staging.sizeLimitBytes: expected `int` >= 1"),
        ("staging.verify", "Never", "staging.verify: invalid enum value 'Never'"),
        ("engine.device", "tpu", "engine.device: invalid enum value 'tpu'"),
        ("engine.dtype", "float16", "engine.dtype: float16 needs device cuda; use float32 or auto on cpu"),
        ("engine.warmUp.texts", [], "engine.warmUp.texts: expected `array` of length >= 1"),
        ("engine.warmUp.maxSeconds", 0, "engine.warmUp.maxSeconds: expected `float` > 0.0"),
    ],
)
def test_what_is_not(path, value, problem):
    with pytest.raises(WorkerError) as raised:
        parse_settings(changed(path, value), Phase.MAP)

    outcome = raised.value.outcome
    assert (outcome.reason, outcome.exit_code, outcome.phase) == (Reason.INVALID_CONFIG, 64, Phase.MAP)
    assert outcome.message.startswith(f"model.json: {problem}")


def test_every_problem_is_told_at_once():
    document = deepcopy(DOCUMENT)
    document["source"] = {"uri": 5, "digest": "?"}
    document["engine"]["device"] = None
    document["extra"] = 1

    with pytest.raises(WorkerError) as raised:
        parse_settings(json.dumps(document).encode(), Phase.STAGE)

    assert str(raised.value) == (
        "model.json: source.uri: expected `str`, got `int`; source.path: missing; "
        "source.digest: expected `str` matching regex '^sha256:[0-9a-f]{64}\\\\Z'; "
        "engine.device: expected `str`, got `null`; extra: unknown field (known: schema, namespace, model, version, "
        "revision, source, staging, engine, memoryHighBytes)"
    )


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "model.json is not JSON: Input data was truncated"),
        (b"{,}", "model.json is not JSON: JSON is malformed: object keys must be strings (byte 1)"),
        (b'{"model": "\xff"}', "model.json is not JSON: "),
        (b"[" * 100_000, "model.json is not JSON: maximum recursion depth exceeded"),
        (b"[]", "model.json: the document: expected an object, got an array"),
    ],
)
def test_what_is_no_document_at_all(raw, message):
    with pytest.raises(WorkerError) as raised:
        parse_settings(raw, Phase.STAGE)

    assert str(raised.value).startswith(message)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(WorkerError) as raised:
        read_settings(tmp_path / "model.json", Phase.STAGE)

    assert str(raised.value) == f"cannot read the configuration {tmp_path / 'model.json'}: No such file or directory"
    assert raised.value.outcome.exit_code == 64

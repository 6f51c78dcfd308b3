"""What the demo prints and how it reads a model's conditions."""

from __future__ import annotations

from typing import Any

from dev.demo.report import speech_lines, timeline
from dev.demo.speak import Speech
from dev.demo.watch import changes


def model(*conditions: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "CosyVoiceModel",
        "metadata": {"name": "narrator", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {
            "conditions": list(conditions),
            "staged": {"seconds": 1.5},
            "load": {"import": 2.0, "map": 0.25, "build": 0.5, "warmUp": 3.0},
        },
    }


READY = {
    "type": "Ready",
    "status": "True",
    "reason": "VersionReady",
    "message": "2/2",
    "lastTransitionTime": "2026-01-01T00:00:12Z",
}


def test_a_new_condition_is_a_change_and_the_same_one_is_not() -> None:
    assert [str(change) for change in changes(None, model(READY), 12.04)] == [
        "  12.0 s  Ready          True     VersionReady           2/2"
    ]
    assert list(changes(model(READY), model(READY), 13.0)) == []


def test_a_new_message_alone_is_a_change() -> None:
    later = {**READY, "message": "1/2"}
    assert [change.message for change in changes(model(READY), model(later), 1.0)] == ["1/2"]


def test_the_timeline_has_every_part_from_apply_to_ready() -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "status": {"conditions": [{"type": "PodScheduled", "lastTransitionTime": "2026-01-01T00:00:01Z"}]},
    }
    assert timeline(model(READY), pod) == [
        ("apply to scheduled", 1.0),
        ("stage", 1.5),
        ("import torch", 2.0),
        ("map", 0.25),
        ("build", 0.5),
        ("warm up", 3.0),
        ("apply to Ready, in all", 12.0),
    ]


def test_speech_is_described_by_its_length_and_speed() -> None:
    speech = Speech(bytes(44 + 48000), 24000, 25, "ab" * 32, 7, 0.5)
    assert speech_lines(speech)[:2] == [
        "length            1.00 s at 24000 Hz",
        "real-time factor  0.50 (below 1 is faster than speaking)",
    ]

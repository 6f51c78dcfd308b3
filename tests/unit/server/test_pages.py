"""What both ports tell about the worker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # its stubs are another package

from cosyvoice_worker.server import openapi
from tests.unit.server import fake_engine
from tests.unit.server.running_front import RunningFront, running_front


@pytest.fixture
async def front() -> AsyncIterator[RunningFront]:
    async with running_front(fake_engine.good) as running:
        yield running


@pytest.mark.parametrize("admin", [False, True])
async def test_probes_are_answered_on_both_ports(front: RunningFront, admin: bool) -> None:
    ping = await front.ask("GET", "/ping", admin=admin)
    health = await front.ask("GET", "/health", admin=admin)

    assert (ping.status, ping.body) == (200, b"pong\n")
    assert (health.status, health.json) == (200, {"phase": "Ready"})


async def test_before_the_model_is_loaded_only_liveness_is_good() -> None:
    async with running_front(fake_engine.never_ready, ready=False) as front:
        await front.until(lambda: front.front.state.phase == "Map")
        ping = await front.ask("GET", "/ping")
        health = await front.ask("GET", "/health")
        status = await front.ask("GET", "/status", admin=True)

    assert ping.status == 200
    assert (health.status, health.json, health.headers["retry-after"]) == (503, {"phase": "Map"}, "1")
    assert (status.json["phase"], status.json["ready"], status.json["load"]) == ("Map", False, {})


async def test_the_status_is_the_document_of_the_contract(front: RunningFront) -> None:
    status = await front.ask("GET", "/status", admin=True)

    assert status.json == {
        "schema": 1,
        "model": "narrator",
        "version": "v1.2.0",
        "revision": "3f9a1c0b7d",
        "digest": "sha256:" + "ab" * 32,
        "phase": "Ready",
        "ready": True,
        "device": "cpu",
        "dtype": "float32",
        "load": {"import": 0.4, "map": 0.1, "build": 0.1, "warmUp": 0.2, "total": 0.8},
        "engine": {"pid": front.launcher.engines[0].pid, "restarts": 0, "inFlight": 0, "queued": 0},
        "staged": {"bytes": 57000000, "seconds": 0.4},
        "failure": None,
        "swap": None,
        "memoryHigh": None,
    }


async def test_the_status_counts_requests_and_tells_the_last_engine_s_end() -> None:
    async with running_front(fake_engine.dying_after(0), fake_engine.waiting) as front:
        await front.speak()
        await front.until(lambda: front.front.state.engine_pid == front.launcher.engines[-1].pid)
        failure = front.front.state.failure
        await front.until(lambda: front.front.state.engine_ready)
        clients = [await front.connect() for _ in range(3)]
        for client in clients:
            await client.speak()
        await front.until(lambda: front.front.dispatcher.queued == 2)
        status = await front.ask("GET", "/status", admin=True)
        for client in clients:
            client.leave()

    pid = front.launcher.engines[1].pid
    assert status.json["engine"] == {"pid": pid, "restarts": 1, "inFlight": 1, "queued": 2}
    assert failure is not None
    assert status.json["failure"] is None


async def test_metrics_tell_requests_load_and_identity(front: RunningFront) -> None:
    await front.speak("Hello.", stream=True)
    await front.speak("")
    text = (await front.ask("GET", "/metrics", admin=True)).body.decode()

    lines = set(text.splitlines())
    assert {
        'cosyvoice_requests_total{outcome="ok"} 1.0',
        'cosyvoice_requests_total{outcome="text-empty"} 1.0',
        'cosyvoice_time_to_first_audio_seconds_count{mode="stream"} 1.0',
        'cosyvoice_load_duration_seconds_sum{phase="total"} 0.8',
        'cosyvoice_load_duration_seconds_bucket{le="120.0",phase="map"} 1.0',
        "cosyvoice_audio_seconds_total 0.06",
        "cosyvoice_real_time_factor_count 1.0",
        "cosyvoice_queue_depth 0.0",
        "cosyvoice_requests_in_flight 0.0",
        "cosyvoice_ready 1.0",
        "cosyvoice_staged_bytes 5.7e+07",
    } <= lines
    digest = "sha256:" + "ab" * 32
    labels = f'device="cpu",digest="{digest}",dtype="float32",revision="3f9a1c0b7d",version="v1.2.0"'
    assert [line for line in lines if line.startswith("cosyvoice_model_info{")] == [
        f"cosyvoice_model_info{{{labels}}} 1.0"
    ]


@pytest.mark.parametrize(("path", "admin"), [("/metrics", False), ("/status", False), ("/v1/audio/speech", True)])
async def test_neither_port_answers_for_the_other(front: RunningFront, path: str, admin: bool) -> None:
    assert (await front.ask("GET", path, admin=admin)).status == 404


async def test_voices_are_listed_with_the_broken_ones_apart(front: RunningFront) -> None:
    reply = await front.ask("GET", "/v1/audio/voices")

    assert reply.json == {
        "voices": [
            {"id": "anna", "name": "anna", "prompt_seconds": 3.2, "prompt_text": "I am Anna."},
            {"id": "ben", "name": "ben", "prompt_seconds": 0.0, "prompt_text": ""},
        ],
        "broken": [{"id": "carl", "reason": "carl.safetensors: too short"}],
    }


async def test_the_model_is_listed_in_openai_s_form(front: RunningFront) -> None:
    listing = (await front.ask("GET", "/v1/models")).json

    assert listing["object"] == "list"
    assert [(model["id"], model["object"]) for model in listing["data"]] == [("narrator", "model")]


async def test_the_docs_need_nothing_from_elsewhere(front: RunningFront) -> None:
    page = await front.ask("GET", "/docs")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"/v1/audio/speech" in page.body
    assert b"<script" not in page.body
    assert b"https://" not in page.body


async def test_the_description_covers_every_path_that_users_have(front: RunningFront) -> None:
    document = (await front.ask("GET", "/openapi.json")).json

    for path, operations in document["paths"].items():
        for method in operations:
            reply = await front.ask(method.upper(), path, b"{}")
            assert str(reply.status) in operations[method]["responses"], path


def resolve(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "components": {"schemas": components}}


async def test_answers_fit_the_schemas_that_describe_them(front: RunningFront) -> None:
    document: Any = openapi.document()
    components = document["components"]["schemas"]
    answers = {
        "Voices": await front.ask("GET", "/v1/audio/voices"),
        "Models": await front.ask("GET", "/v1/models"),
        "Problem": await front.speak(""),
    }

    for name, reply in answers.items():
        Draft202012Validator(resolve(components[name], components)).validate(reply.json)
    Draft202012Validator(components["SpeechRequest"]).validate({"input": "Hello.", "voice": None, "seed": 1})
    assert not Draft202012Validator(components["SpeechRequest"]).is_valid({"input": "Hello.", "colour": "red"})

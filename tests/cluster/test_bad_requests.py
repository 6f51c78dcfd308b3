"""Requests that cannot be spoken, through the Service of a model that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from dev.demo import speak
from dev.playground import Playground
from dev.waiting import wait_for

SPEECH = "/v1/audio/speech"
NAME = "patient"


@pytest.fixture(scope="module")
def service(shared_playground: Playground, tiny_path: str) -> Iterator[httpx.Client]:
    """The Service of a model that is ready."""
    shared_playground.apply_model(NAME, path=tiny_path)
    shared_playground.wait_ready(NAME)
    with (
        speak.port_forward(shared_playground.kubectl, shared_playground.namespace, NAME) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        yield client


@dataclass(frozen=True)
class Case:
    name: str
    body: bytes
    status: int
    kind: str
    detail: str


def said(**fields: object) -> bytes:
    return json.dumps({"input": "Hello.", **fields}).encode()


CASES = [
    Case("an empty text", said(input=""), 400, "text-empty", "input is empty: there is nothing to speak"),
    Case(
        "a text of 100,000 characters",
        said(input="a" * 100_000),
        413,
        "text-too-long",
        "input has 100,000 characters, over the limit of 5,000",
    ),
    Case(
        "a text that is not UTF-8",
        b'{"input": "\xff"}',
        400,
        "not-utf-8",
        "the body is not UTF-8: wrong byte at position 11",
    ),
    Case(
        "only punctuation",
        said(input="... ?!"),
        400,
        "nothing-to-speak",
        "input has no letter or digit: there is nothing to speak",
    ),
    Case(
        "an unknown voice",
        said(voice="nobody"),
        404,
        "unknown-voice",
        "there is no voice 'nobody'; there are: none",
    ),
    Case(
        "an unsupported format",
        said(response_format="aiff"),
        400,
        "unsupported-format",
        "response_format 'aiff' is not supported; supported are: wav, pcm",
    ),
    Case(
        "a body that is too large",
        b" " * (2 * 1024 * 1024),
        413,
        "body-too-large",
        "the body is over the limit of 1,048,576 bytes",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_request_that_cannot_be_spoken_is_refused_in_words(service: httpx.Client, case: Case) -> None:
    reply = service.post(SPEECH, content=case.body, headers={"content-type": "application/json"})

    problem = reply.json()
    assert (reply.status_code, reply.headers["content-type"]) == (case.status, "application/problem+json")
    assert (problem["status"], problem["detail"]) == (case.status, case.detail)
    assert problem["type"] == f"https://cosyvoice.dev/problems/{case.kind}"
    assert problem["requestId"] == reply.headers["x-request-id"]


def test_a_client_that_leaves_frees_its_place_at_once(shared_playground: Playground, service: httpx.Client) -> None:
    body = {"input": "This is a sentence that is spoken to nobody. " * 60, "stream": True, "response_format": "pcm"}

    with service.stream("POST", SPEECH, json=body) as reply:
        assert reply.status_code == 200
        next(reply.iter_bytes())

    (pod,) = shared_playground.pods(NAME)
    pages = f"/api/v1/namespaces/{shared_playground.namespace}/pods/{pod['metadata']['name']}:8081/proxy"

    def page(name: str) -> str:
        return shared_playground.run("get", "--raw", f"{pages}/{name}")

    def counted() -> bool:
        lines = page("metrics").splitlines()
        return any('outcome="client-gone"' in line and line.endswith(" 1.0") for line in lines)

    wait_for("the end of the request to be counted", counted)
    wait_for("the engine to be free", lambda: json.loads(page("status"))["engine"]["inFlight"] == 0)
    assert service.post(SPEECH, json={"input": "Hello.", "seed": 1}).status_code == 200

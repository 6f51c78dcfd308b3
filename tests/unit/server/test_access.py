"""API keys over the wire: who is let in, to what, and how keys come and go."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cosyvoice_worker.server.api_keys import ApiKeys
from tests.unit.server import fake_engine
from tests.unit.server.running_front import Reply, RunningFront, running_front

ANN, BEN = "ann-0123456789abcdef", "ben-0123456789abcdef"
SPEECH = "/v1/audio/speech"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """What the kubelet mounts: files that are links into the directory of what it wrote last."""
    mount = tmp_path / "api-keys"
    mount.mkdir()
    write(mount, ann=ANN)
    return mount


def write(mount: Path, **keys: str) -> None:
    """Replace the keys as the kubelet does: a new directory, and one rename."""
    number = sum(1 for path in mount.iterdir() if path.is_dir() and not path.is_symlink())
    written = mount / f"..{number}"
    written.mkdir()
    for name, key in keys.items():
        (written / name).write_text(key)
    (mount / "..new").symlink_to(written.name)
    (mount / "..new").rename(mount / "..data")


@pytest.fixture
async def front(keys: Path) -> AsyncIterator[RunningFront]:
    async with running_front(fake_engine.good, api_keys=ApiKeys(keys, look_seconds=0)) as running:
        yield running


async def speak(front: RunningFront, **headers: str) -> Reply:
    return await front.ask("POST", SPEECH, json.dumps({"input": "Hello."}).encode(), **headers)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_a_key_opens(front: RunningFront, scheme: str) -> None:
    assert (await speak(front, authorization=f"{scheme} {ANN}")).status == 200


@pytest.mark.parametrize(
    "sent", ["", "Bearer", "Bearer ", f"Basic {ANN}", ANN, f"Bearer {ANN}x", f"Bearer {ANN[:-1]}", f"Bearer {BEN}"]
)
async def test_nothing_else_does(front: RunningFront, sent: str) -> None:
    reply = await speak(front, authorization=sent)

    assert (reply.status, reply.headers["content-type"]) == (401, "application/problem+json")
    assert reply.headers["www-authenticate"] == 'Bearer realm="cosyvoice", error="invalid_token"'
    assert reply.json["type"] == "https://cosyvoice.dev/problems/unauthorized"
    assert sent[7:] == "" or sent[7:] not in reply.body.decode()
    assert front.launcher.engines[0].received == []


async def test_without_a_key_it_is_told_what_is_wanted(front: RunningFront) -> None:
    reply = await speak(front, x_request_id="r-1")

    assert reply.headers["www-authenticate"] == 'Bearer realm="cosyvoice"'
    assert reply.json["detail"] == "an API key is needed: send the header 'Authorization: Bearer KEY'"
    assert (reply.json["requestId"], reply.json["instance"]) == ("r-1", SPEECH)
    assert front.count("unauthorized") == 1


@pytest.mark.parametrize("path", ["/ping", "/health", "/docs", "/openapi.json", "/v1/models", "/nothing"])
async def test_a_stranger_is_not_told_the_version(front: RunningFront, path: str) -> None:
    stranger = await front.ask("GET", path)
    known = await front.ask("GET", "/v1/models", authorization=f"Bearer {ANN}")

    assert "x-cosyvoice-version" not in stranger.headers
    assert "v1.2.0" not in stranger.body.decode()
    assert known.headers["x-cosyvoice-version"] == "v1.2.0"


async def test_two_keys_in_one_request_open_nothing(front: RunningFront) -> None:
    assert (await speak(front, authorization=f"Bearer {ANN}", Authorization=f"Bearer {ANN}")).status == 401


@pytest.mark.parametrize(
    ("path", "status"),
    [("/ping", 200), ("/health", 200), ("/docs", 200), ("/openapi.json", 200)]
    + [(path, 401) for path in ("/v1/models", "/v1/audio/voices", SPEECH, "/nothing", "/ping/", "//ping", "/status")],
)
async def test_all_but_the_probes_and_the_description_is_closed(front: RunningFront, path: str, status: int) -> None:
    assert (await front.ask("GET", path)).status == status


@pytest.mark.parametrize("path", ["/ping", "/health", "/status", "/metrics"])
async def test_the_admin_port_asks_for_no_key(front: RunningFront, path: str) -> None:
    assert (await front.ask("GET", path, admin=True)).status == 200


async def test_a_body_is_not_read_before_its_key(front: RunningFront) -> None:
    client = await front.connect()
    await client.send("POST", SPEECH, content_length="1000")
    reply = await client.reply()
    client.leave()

    assert reply.status == 401


async def test_keys_come_and_go_without_a_restart(front: RunningFront, keys: Path) -> None:
    async def opened() -> tuple[bool, bool]:
        replies = [await speak(front, authorization=f"Bearer {key}") for key in (ANN, BEN)]
        return replies[0].status == 200, replies[1].status == 200

    assert await opened() == (True, False)
    write(keys, ann=ANN, ben=BEN)
    assert await opened() == (True, True)
    write(keys, ben=BEN)
    assert await opened() == (False, True)


@pytest.mark.parametrize("left", [{}, {"ann": ""}, {"ann": "short"}], ids=["empty", "an empty key", "a short key"])
async def test_where_no_key_is_left_nobody_is_let_in(front: RunningFront, keys: Path, left: dict[str, str]) -> None:
    write(keys, **left)
    replies = [await speak(front, authorization=f"Bearer {key}") for key in (ANN, *left.values())]
    replies.append(await speak(front))

    assert {reply.status for reply in replies} == {503}
    assert replies[0].json["type"] == "https://cosyvoice.dev/problems/no-api-keys"
    assert (await front.ask("GET", "/ping")).status == 200


async def test_a_page_of_another_origin_is_never_invited(front: RunningFront) -> None:
    asked = {"origin": "https://elsewhere.example", "access_control_request_method": "POST"}
    before = await front.ask("OPTIONS", SPEECH, **asked)
    replies = [before, await speak(front, authorization=f"Bearer {ANN}", **asked)]

    assert before.status == 401
    assert [name for reply in replies for name in reply.headers if name.startswith("access-control-")] == []


async def test_without_keys_a_page_of_another_origin_is_not_invited_either() -> None:
    async with running_front(fake_engine.good) as front:
        before = await front.ask("OPTIONS", SPEECH, origin="https://elsewhere.example")
        spoken = await speak(front, origin="https://elsewhere.example")

    assert (before.status, spoken.status) == (405, 200)
    assert [name for reply in (before, spoken) for name in reply.headers if name.startswith("access-control-")] == []

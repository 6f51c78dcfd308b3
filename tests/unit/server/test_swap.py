"""An order to serve another revision, carried out with engines that do what a script says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.server import fake_engine
from tests.unit.server.fake_engine import Paused, samples
from tests.unit.server.running_front import FakeVoices
from tests.unit.server.swapping import NEW, OLD, pod_with, swap_of


async def test_the_ordered_revision_takes_over_and_the_old_engine_ends(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good) as (pod, front):
        before = await front.speak("Before.")
        pod.offer(f"{NEW}.1")
        swap = await swap_of(front, "Switched", "Failed")
        after = await front.speak("After.")
        status = (await front.ask("GET", "/status", admin=True)).json
        await front.launcher.engines[0].wait()
        metrics = (await front.ask("GET", "/metrics", admin=True)).body.decode()

    assert swap == {
        "order": f"{NEW}.1",
        "revision": NEW,
        "state": "Switched",
        "phase": None,
        "room": False,
        "failure": None,
        "load": fake_engine.READY.load,
    }
    assert [reply.headers["x-cosyvoice-version"] for reply in (before, after)] == ["v1.2.0", f"v-{NEW}"]
    assert (status["revision"], status["version"], status["ready"]) == (NEW, f"v-{NEW}", True)
    assert (status["digest"], status["staged"]) == ("sha256:" + "62" * 32, {"bytes": 5, "seconds": 0.1})
    assert status["engine"]["pid"] == front.launcher.engines[1].pid
    assert 'cosyvoice_engine_swaps_total{result="switched"} 1.0' in metrics
    assert f'revision="{NEW}"' in metrics
    assert "cosyvoice_staged_bytes 5.0" in metrics


async def test_the_voices_are_those_of_the_version_that_serves(tmp_path: Path) -> None:
    voices = FakeVoices()
    async with pod_with(tmp_path, fake_engine.good, voices=voices) as (pod, front):
        pod.offer(f"{NEW}.1")
        await swap_of(front, "Switched")

    assert voices.model == tmp_path / ("62" * 32)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_that_runs_is_finished_by_its_engine_and_what_waits_goes_to_the_new_one(
    tmp_path: Path, stream: bool
) -> None:
    old = Paused()
    async with pod_with(tmp_path, old, fake_engine.good) as (pod, front):
        running, waiting = await front.connect(), await front.connect()
        await running.speak("Running.", response_format="pcm", stream=stream)
        await front.until(lambda: front.front.dispatcher.in_flight == 1)
        await waiting.speak("Waiting.", response_format="pcm", stream=stream)
        await front.until(lambda: front.front.dispatcher.queued == 1)
        pod.offer(f"{NEW}.1")
        second = await waiting.reply()
        still_there = front.launcher.engines[0].private_bytes() is not None
        old.go_on.set()
        first = await running.reply()
        await front.launcher.engines[0].wait()
        for client in (running, waiting):
            client.leave()

    assert still_there
    assert (first.complete, first.body, first.headers["x-cosyvoice-version"]) == (True, samples("Running."), "v1.2.0")
    assert (second.complete, second.body) == (True, samples("Waiting."))
    assert second.headers["x-cosyvoice-version"] == f"v-{NEW}"


async def test_while_the_second_engine_loads_the_first_one_is_what_is_told(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good, fake_engine.never_ready) as (pod, front):
        pod.offer(f"{NEW}.1")
        await front.until(lambda: front.front.state.swap is not None and front.front.state.swap.phase == "Map")
        health = await front.ask("GET", "/health")
        status = (await front.ask("GET", "/status", admin=True)).json
        spoken = await front.speak("Hi.")

    assert (health.status, health.json) == (200, {"phase": "Ready"})
    assert (status["revision"], status["phase"], status["swap"]["state"]) == (OLD, "Ready", "Loading")
    assert status["engine"]["pid"] == front.launcher.engines[0].pid
    assert (spoken.status, spoken.headers["x-cosyvoice-version"]) == (200, "v1.2.0")


async def test_a_failed_order_is_tried_again_only_by_another_attempt(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good, fake_engine.refusing, fake_engine.good) as (pod, front):
        pod.offer(f"{NEW}.1")
        await swap_of(front, "Failed")
        pod.order(f"{NEW}.1.nonce")
        await asyncio.sleep(0.05)
        same = len(front.launcher.engines)
        pod.offer(f"{NEW}.2")
        swap = await swap_of(front, "Switched")

    assert same == 2
    assert swap["order"] == f"{NEW}.2"


async def test_the_revision_that_serves_is_switched_to_at_once(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good) as (pod, front):
        pod.order(f"{OLD}.7")
        swap = await swap_of(front, "Switched")

    assert (swap["order"], swap["failure"]) == (f"{OLD}.7", None)
    assert len(front.launcher.engines) == 1


async def test_an_order_that_a_front_before_this_one_had_begun_is_not_begun_again(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good) as (pod, front):
        pod.mark_begun(f"{NEW}.1")
        pod.offer(f"{NEW}.1")
        swap = await swap_of(front, "Failed")

    assert (swap["failure"]["reason"], swap["failure"]["retryable"]) == ("EngineDied", True)
    assert swap["failure"]["message"] == "the worker restarted during the swap"
    assert len(front.launcher.engines) == 1


@pytest.mark.parametrize("text", ["", "no order", f"{NEW}", f"{NEW}.x", "../../etc.1"])
async def test_what_is_no_order_is_none(tmp_path: Path, text: str) -> None:
    async with pod_with(tmp_path, fake_engine.good) as (pod, front):
        pod.order(f"{OLD}.1")
        await swap_of(front, "Switched")
        pod.order(text)
        await front.until(lambda: front.front.state.swap is None)

        assert (await front.speak("Hi.")).status == 200


async def test_another_order_ends_the_one_under_way(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good, fake_engine.never_ready, fake_engine.good) as (pod, front):
        pod.offer(f"{NEW}.1")
        await front.until(lambda: len(front.launcher.engines) == 2)
        pod.offer("c1c2c3c4c5.2")
        swap = await swap_of(front, "Switched")
        killed = await front.launcher.engines[1].wait()

    assert killed == fake_engine.KILLED
    assert swap["revision"] == "c1c2c3c4c5"
    assert [version.identity.revision for version in front.launcher.versions] == [OLD, NEW, "c1c2c3c4c5"]


async def test_an_order_that_is_withdrawn_ends_the_second_engine(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good, fake_engine.never_ready) as (pod, front):
        pod.offer(f"{NEW}.1")
        await front.until(lambda: len(front.launcher.engines) == 2)
        pod.order("")

        assert await front.launcher.engines[1].wait() == fake_engine.KILLED
        await front.until(lambda: front.front.state.swap is None)
        assert (await front.speak("Hi.")).status == 200


async def test_two_swaps_in_a_row_and_back(tmp_path: Path) -> None:
    versions = []
    async with pod_with(tmp_path, fake_engine.good) as (pod, front):
        for order in (f"{NEW}.1", "c1c2c3c4c5.2", f"{OLD}.3"):
            pod.offer(order)
            await swap_of(front, "Switched", order=order)
            versions.append((await front.speak("Hi.")).headers["x-cosyvoice-version"])
        for engine in front.launcher.engines[:3]:
            await engine.wait()

    assert versions == [f"v-{NEW}", "v-c1c2c3c4c5", f"v-{OLD}"]


async def test_an_engine_that_took_over_is_replaced_by_its_own_version(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good, fake_engine.dying_after(0), fake_engine.good) as (pod, front):
        pod.offer(f"{NEW}.1")
        await swap_of(front, "Switched")
        refused = await front.speak("Hi.")
        await front.until(lambda: len(front.launcher.engines) == 3 and front.front.state.engine_ready)
        spoken = await front.speak("Hi.")

    assert refused.status == 503
    assert spoken.headers["x-cosyvoice-version"] == f"v-{NEW}"
    assert [version.identity.revision for version in front.launcher.versions] == [OLD, NEW, NEW]


async def test_without_preload_an_order_loads_the_first_engine_there_is(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good, lazy=True) as (pod, front):
        pod.offer(f"{NEW}.1")
        await swap_of(front, "Switched")
        spoken = await front.speak("Hi.")

    assert (spoken.status, spoken.headers["x-cosyvoice-version"]) == (200, f"v-{NEW}")
    assert [version.identity.revision for version in front.launcher.versions] == [NEW]

"""An order to serve another revision, carried out with engines that do what a script says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cosyvoice_worker.channel import Bound
from cosyvoice_worker.server.room import MIB
from cosyvoice_worker.server.second_engine import Container
from tests.unit.server import fake_engine
from tests.unit.server.fake_engine import FakeEngine, Script, samples
from tests.unit.server.pod import Pod
from tests.unit.server.running_front import FakeVoices, RunningFront, running_front

OLD = "3f9a1c0b7d"
NEW = "b1b2b3b4b5"


@asynccontextmanager
async def pod_with(tmp_path: Path, *scripts: Script, **options: Any) -> AsyncIterator[tuple[Pod, RunningFront]]:
    async with running_front(*scripts, root=tmp_path, **options) as front:
        yield Pod(tmp_path), front


async def swap_of(front: RunningFront, *states: str, order: str = "") -> dict[str, Any]:
    """The swap that the status tells, once it is in one of `states` (and that of `order`, where it matters)."""

    def there() -> bool:
        swap = front.front.state.swap
        return swap is not None and swap.state in states and swap.order.startswith(order)

    await front.until(there)
    document: dict[str, Any] = (await front.ask("GET", "/status", admin=True)).json["swap"]
    return document


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


class Paused:
    """An engine that loads and waits with each answer until it may go on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def __call__(self, engine: FakeEngine) -> None:
        await engine.load()
        while True:
            request = await engine.request()
            await self.go_on.wait()
            await fake_engine.speak(engine, request)


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


async def crash(engine: FakeEngine) -> None:
    engine.exit_code = -11


@pytest.mark.parametrize(
    ("script", "load_seconds", "reason", "words"),
    [
        (fake_engine.refusing, 60, "MissingTensor", "llm.pt lacks x"),
        (crash, 60, "EngineDied", "by SIGSEGV"),
        (fake_engine.never_ready, 1, "LoadTimeout", "the model was not loaded within 1 s: it is still in phase Map"),
    ],
)
async def test_a_second_engine_that_fails_changes_nothing(
    tmp_path: Path, script: Script, load_seconds: int, reason: str, words: str
) -> None:
    async with pod_with(tmp_path, fake_engine.good, script) as (pod, front):
        pod.offer(f"{NEW}.1", loadTimeoutSeconds=load_seconds)
        swap = await swap_of(front, "Failed", "Switched")
        status = (await front.ask("GET", "/status", admin=True)).json
        spoken = await front.speak("Hi.")
        await front.launcher.engines[1].wait()

    assert (swap["state"], swap["phase"], swap["room"]) == ("Failed", None, False)
    assert swap["failure"]["reason"] == reason
    assert words in swap["failure"]["message"]
    assert (status["revision"], status["ready"], status["failure"]) == (OLD, True, None)
    assert status["engine"]["restarts"] == 0
    assert spoken.status == 200
    assert len(front.launcher.engines) == 2


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


async def test_it_waits_for_the_stager_and_tells_why_staging_failed(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good) as (pod, front):
        pod.order(f"{NEW}.1")
        nothing = await swap_of(front, "Staging")
        pod.tell(f"{NEW}.1", "Staging")
        begun = await swap_of(front, "Staging")
        pod.tell(f"{NEW}.1", "Failed", room=True, reason="OutOfSpace", message="too large")
        failed = await swap_of(front, "Failed")

    assert nothing == begun
    assert (failed["failure"], failed["room"]) == ({"reason": "OutOfSpace", "message": "too large"}, True)
    assert len(front.launcher.engines) == 1


async def test_a_document_that_cannot_be_served_fails_the_swap(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good) as (pod, front):
        pod.offer(f"{NEW}.1", device="tpu")
        swap = await swap_of(front, "Failed")

    assert swap["failure"]["reason"] == "InvalidConfig"
    assert "engine.device" in swap["failure"]["message"]


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


class Gate:
    """An engine that loads when it may."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, engine: FakeEngine) -> None:
        await self.open.wait()
        await fake_engine.good(engine)


async def test_when_the_first_engine_dies_meanwhile_it_is_replaced_and_the_swap_goes_on(tmp_path: Path) -> None:
    gate = Gate()
    scripts = (fake_engine.dying_after(0), gate, fake_engine.good)
    async with pod_with(tmp_path, *scripts) as (pod, front):
        pod.offer(f"{NEW}.1")
        await front.until(lambda: len(front.launcher.engines) == 2)
        refused = await front.speak("Hi.")
        await front.until(lambda: len(front.launcher.engines) == 3 and front.front.state.engine_ready)
        between = await front.speak("Hi.")
        gate.open.set()
        await swap_of(front, "Switched")
        after = await front.speak("Hi.")
        await front.launcher.engines[2].wait()

    assert refused.status == 503
    assert [reply.headers["x-cosyvoice-version"] for reply in (between, after)] == ["v1.2.0", f"v-{NEW}"]


async def test_a_second_engine_that_is_ready_first_takes_over_from_one_that_is_being_replaced(tmp_path: Path) -> None:
    gate = Gate()
    async with pod_with(tmp_path, fake_engine.dying_after(0), gate, fake_engine.never_ready) as (pod, front):
        pod.offer(f"{NEW}.1")
        await front.until(lambda: len(front.launcher.engines) == 2)
        await front.speak("Hi.")
        await front.until(lambda: front.front.state.phase == "Map")
        gate.open.set()
        await swap_of(front, "Switched")
        spoken = await front.speak("Hi.")
        replaced = await front.launcher.engines[2].wait()

    assert (spoken.status, spoken.headers["x-cosyvoice-version"]) == (200, f"v-{NEW}")
    assert replaced == fake_engine.KILLED


async def test_a_stop_ends_both_engines_and_waits_for_the_request_that_runs(tmp_path: Path) -> None:
    old = Paused()
    async with pod_with(tmp_path, old, fake_engine.never_ready) as (pod, front):
        client = await front.connect()
        await client.speak("Running.", response_format="pcm")
        await front.until(lambda: front.front.dispatcher.in_flight == 1)
        pod.offer(f"{NEW}.1")
        await front.until(lambda: len(front.launcher.engines) == 2)
        front.front.stop()
        second = await front.launcher.engines[1].wait()
        old.go_on.set()
        reply = await client.reply()
        client.leave()
        outcome = await front.running

    assert (second, outcome) == (fake_engine.KILLED, None)
    assert reply.body == samples("Running.")


async def test_a_stop_while_the_old_engine_finishes_ends_both(tmp_path: Path) -> None:
    old = Paused()
    async with pod_with(tmp_path, old, fake_engine.good) as (pod, front):
        client = await front.connect()
        await client.speak("Running.", response_format="pcm")
        await front.until(lambda: front.front.dispatcher.in_flight == 1)
        pod.offer(f"{NEW}.1")
        await swap_of(front, "Switched")
        front.front.stop()
        await front.until(lambda: front.front.state.draining)
        old.go_on.set()
        reply = await client.reply()
        client.leave()
        outcome = await front.running
        ends = [await engine.wait() for engine in front.launcher.engines]

    assert outcome is None
    assert reply.body == samples("Running.")
    assert len(ends) == 2


def container(limit: int, used: int) -> Callable[[], Container]:
    return lambda: Container(limit=limit * MIB, used=used * MIB)


async def test_without_room_the_swap_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good, measure=container(500, 250)) as (pod, front):
        pod.offer(f"{NEW}.1")
        swap = await swap_of(front, "Failed")
        metrics = (await front.ask("GET", "/metrics", admin=True)).body.decode()

    assert (swap["room"], swap["failure"]["reason"], swap["failure"]["retryable"]) == (True, "OutOfMemory", True)
    assert swap["failure"]["message"].startswith("no room for a second engine: it needs 100.0 MiB, ")
    assert 'cosyvoice_engine_swaps_total{result="no-room"} 1.0' in metrics
    assert len(front.launcher.engines) == 1


async def test_both_engines_are_bounded_while_there_are_two_and_the_only_one_is_free_again(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good, measure=container(1000, 308)) as (pod, front):
        pod.offer(f"{NEW}.1")
        await swap_of(front, "Switched")
        await front.until(lambda: front.launcher.engines[1].received == [Bound(growth=None)])
        first, second = front.launcher.engines

    # 1000 - 308 - 192 = 500 MiB are left: 100 for the second engine, and half of the rest for each.
    assert front.launcher.memory_bytes == [None, 300 * MIB]
    assert first.received[0] == Bound(growth=200 * MIB)
    assert second.private_bytes() is None


async def test_after_a_failure_the_first_engine_has_its_memory_again(tmp_path: Path) -> None:
    scripts = (fake_engine.good, fake_engine.refusing)
    async with pod_with(tmp_path, *scripts, measure=container(1000, 308)) as (pod, front):
        pod.offer(f"{NEW}.1")
        await swap_of(front, "Failed")
        first = front.launcher.engines[0]
        await front.until(lambda: len(first.received) == 2)

    assert first.received[:2] == [Bound(growth=200 * MIB), Bound(growth=None)]


async def test_without_preload_an_order_loads_the_first_engine_there_is(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good, lazy=True) as (pod, front):
        pod.offer(f"{NEW}.1")
        await swap_of(front, "Switched")
        spoken = await front.speak("Hi.")

    assert (spoken.status, spoken.headers["x-cosyvoice-version"]) == (200, f"v-{NEW}")
    assert [version.identity.revision for version in front.launcher.versions] == [NEW]

"""An order that fails, is refused, or meets the death or the end of what serves: users notice nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cosyvoice_worker.channel import Bound
from cosyvoice_worker.server.room import MIB
from cosyvoice_worker.server.second_engine import Container
from tests.unit.server import fake_engine
from tests.unit.server.fake_engine import FakeEngine, Paused, Script, samples
from tests.unit.server.swapping import NEW, OLD, Gate, pod_with, swap_of


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


def container(limit: int | None, used: int, high: int | None = None) -> Callable[[], Container]:
    def mib(count: int | None) -> int | None:
        return None if count is None else count * MIB

    return lambda: Container(limit=mib(limit), used=used * MIB, high=mib(high))


async def test_without_room_the_swap_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    async with pod_with(tmp_path, fake_engine.good, measure=container(500, 250)) as (pod, front):
        pod.offer(f"{NEW}.1")
        swap = await swap_of(front, "Failed")
        metrics = (await front.ask("GET", "/metrics", admin=True)).body.decode()

    assert (swap["room"], swap["failure"]["reason"], swap["failure"]["retryable"]) == (True, "OutOfMemory", True)
    assert swap["failure"]["message"].startswith("no room for a second engine: it needs 100.0 MiB, ")
    assert 'cosyvoice_engine_swaps_total{result="no-room"} 1.0' in metrics
    assert len(front.launcher.engines) == 1


@pytest.mark.parametrize("limit", [None, 2000, 500])
async def test_memory_high_counts_like_a_limit_where_it_is_lower(tmp_path: Path, limit: int | None) -> None:
    async with pod_with(tmp_path, fake_engine.good, measure=container(limit, 250, high=500)) as (pod, front):
        pod.offer(f"{NEW}.1")
        swap = await swap_of(front, "Failed")

    assert "of the worker container's memory.high of 500.0 MiB" in swap["failure"]["message"]
    assert "raise spec.worker.memoryHigh to at least 542Mi" in swap["failure"]["message"]


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
    assert (first.bounds, second.bounds) == ([200 * MIB], [None])  # what the kernel is told


async def test_after_a_failure_the_first_engine_has_its_memory_again(tmp_path: Path) -> None:
    scripts = (fake_engine.good, fake_engine.refusing)
    async with pod_with(tmp_path, *scripts, measure=container(1000, 308)) as (pod, front):
        pod.offer(f"{NEW}.1")
        await swap_of(front, "Failed")
        first = front.launcher.engines[0]
        await front.until(lambda: len(first.received) == 2)

    assert first.received[:2] == [Bound(growth=200 * MIB), Bound(growth=None)]
    assert first.bounds == [200 * MIB, None]

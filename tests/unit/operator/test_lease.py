"""The lease: at most one leader, none for ever, and no leader that does not know whether it is one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cosyvoice_operator import lease as module
from cosyvoice_operator.lease import DURATION_SECONDS, RENEW_DEADLINE_SECONDS, Lease
from tests.unit.operator.leases import FakeLeaseStore


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store() -> FakeLeaseStore:
    return FakeLeaseStore()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def candidate(store: FakeLeaseStore, clock: Clock, name: str) -> Lease:
    return Lease(store, "cosyvoice-system", name, clock, retry_seconds=0.001)


async def acquired(lease: Lease) -> bool:
    """Whether the lease is had after some tries."""
    try:
        async with asyncio.timeout(0.05):
            await lease.acquire()
    except TimeoutError:
        return False
    return True


def holder(store: FakeLeaseStore) -> str:
    assert store.lease is not None
    return str(store.lease["spec"]["holderIdentity"])


async def test_the_first_candidate_gets_it_and_the_second_does_not(store: FakeLeaseStore, clock: Clock) -> None:
    assert await acquired(candidate(store, clock, "a"))
    assert not await acquired(candidate(store, clock, "b"))
    assert holder(store) == "a"


async def test_a_released_lease_is_free_at_once(store: FakeLeaseStore, clock: Clock) -> None:
    first = candidate(store, clock, "a")
    await first.acquire()

    await first.release()

    assert await acquired(candidate(store, clock, "b"))


async def test_a_dead_leaders_lease_is_taken_over_when_it_has_run_out(store: FakeLeaseStore, clock: Clock) -> None:
    await candidate(store, clock, "a").acquire()
    successor = candidate(store, clock, "b")
    assert not await acquired(successor)

    clock.now += DURATION_SECONDS - 1
    assert not await acquired(successor)
    clock.now += 1
    assert await acquired(successor)

    assert store.lease is not None
    assert store.lease["spec"]["leaseTransitions"] == 2


async def test_a_lease_that_is_renewed_never_runs_out(store: FakeLeaseStore, clock: Clock) -> None:
    leader, other = candidate(store, clock, "a"), candidate(store, clock, "b")
    await leader.acquire()

    for _ in range(5):
        assert not await acquired(other)
        clock.now += DURATION_SECONDS - 1
        await leader.acquire()

    assert not await acquired(other)


async def test_the_same_identity_takes_its_lease_up_again(store: FakeLeaseStore, clock: Clock) -> None:
    await candidate(store, clock, "a").acquire()

    assert await acquired(candidate(store, clock, "a"))


async def test_a_leader_ends_when_someone_else_has_the_lease(store: FakeLeaseStore, clock: Clock) -> None:
    leader = candidate(store, clock, "a")
    await leader.acquire()
    assert store.lease is not None
    store.lease["spec"]["holderIdentity"] = "b"

    await asyncio.wait_for(leader.hold(), 5)


async def test_a_leader_ends_when_it_could_not_renew_for_too_long(store: FakeLeaseStore, clock: Clock) -> None:
    leader = candidate(store, clock, "a")
    await leader.acquire()
    store.broken = True
    holding = asyncio.create_task(leader.hold())
    await asyncio.sleep(0.02)
    assert not holding.done()

    clock.now += RENEW_DEADLINE_SECONDS

    await asyncio.wait_for(holding, 5)


async def test_a_leader_survives_a_short_disturbance(store: FakeLeaseStore, clock: Clock) -> None:
    leader = candidate(store, clock, "a")
    await leader.acquire()
    holding = asyncio.create_task(leader.hold())
    store.broken = True
    clock.now += RENEW_DEADLINE_SECONDS / 2
    await asyncio.sleep(0.01)
    store.broken = False
    await asyncio.sleep(0.01)
    clock.now += RENEW_DEADLINE_SECONDS / 2
    await asyncio.sleep(0.01)

    assert not holding.done()
    holding.cancel()


async def test_a_leader_counts_from_when_it_asked_and_not_from_the_answer(store: FakeLeaseStore, clock: Clock) -> None:
    class Slow(FakeLeaseStore):
        """Takes a lease in, and says so nine seconds later."""

        async def replace(self, manifest: dict[str, Any]) -> dict[str, Any]:
            written = await super().replace(manifest)
            clock.now += RENEW_DEADLINE_SECONDS - 1
            return written

    slow = Slow()
    leader = candidate(slow, clock, "a")
    await leader.acquire()  # a creation, which is answered at once
    await leader.acquire()
    slow.broken = True
    holding = asyncio.create_task(leader.hold())
    await asyncio.sleep(0.01)
    assert not holding.done()

    clock.now += 1

    await asyncio.wait_for(holding, 5)


async def test_a_leader_waits_for_no_answer_longer_than_it_may_lead(store: FakeLeaseStore, clock: Clock) -> None:
    class Silent(FakeLeaseStore):
        """Answers nothing once it is `broken`."""

        async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
            if self.broken:
                await asyncio.Event().wait()
            return await super().get(kind, namespace, name)

    silent = Silent()
    leader = candidate(silent, clock, "a")
    await leader.acquire()
    silent.broken = True
    clock.now += RENEW_DEADLINE_SECONDS - 0.1

    holding = asyncio.create_task(leader.hold())
    await asyncio.sleep(0)
    clock.now += 0.05

    async with asyncio.timeout(RENEW_DEADLINE_SECONDS / 2):
        while not holding.done():
            await asyncio.sleep(0.01)
            clock.now += 0.01


async def test_release_leaves_a_lease_of_another_alone(store: FakeLeaseStore, clock: Clock) -> None:
    first = candidate(store, clock, "a")
    await first.acquire()
    assert store.lease is not None
    store.lease["spec"]["holderIdentity"] = "b"

    await first.release()

    assert holder(store) == "b"


def test_a_leader_gives_up_well_before_anyone_may_take_over() -> None:
    assert module.RENEW_DEADLINE_SECONDS + module.RETRY_SECONDS < module.DURATION_SECONDS

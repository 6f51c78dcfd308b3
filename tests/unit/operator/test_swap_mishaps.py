"""Swaps and what comes between: pods that go, nodes without memory, clocks that are wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cosyvoice_operator.swap import LOADING, STAGING, SWITCHED
from tests.unit.operator.swapping import NEW, Scene, swappable_pod


def two_pods() -> Scene:
    return Scene(swappable_pod("a"), swappable_pod("b"))


def test_the_pod_that_tried_may_go_and_another_one_takes_its_place() -> None:
    scene = two_pods()
    scene.step()
    del scene.pods["a"]

    scene.step()

    assert scene.orders() == [f"{NEW}.5"]


def test_a_pod_that_is_evicted_over_a_try_is_not_followed_by_the_others() -> None:
    scene = two_pods()
    scene.step()
    scene.change("a", lost="Evicted", lost_message="The node was low on resource: memory.", ready=False, status=None)

    refused = scene.step(seconds=5)

    assert (refused.room_refused, refused.condemned, scene.orders()) == (True, False, [f"{NEW}.5", None])
    assert refused.message == "a was evicted from node1 while it was to load v2: The node was low on resource: memory."

    scene.step(seconds=3600)
    scene.step()
    assert scene.orders() == [f"{NEW}.5", f"{NEW}.6"]
    assert scene.attempt.tries == 0


def test_an_order_from_another_clocks_future_is_given_again() -> None:
    scene = Scene(swappable_pod("a", order=f"{NEW}.5.9999999999"), swappable_pod("b"))

    assert scene.step().order is not None
    assert scene.told("a") == f"{NEW}.5"
    assert scene.step().order is None


def test_a_lost_pod_and_pods_of_another_template_are_left_alone() -> None:
    gone = swappable_pod("gone", lost="Evicted", ready=False)
    other = replace(swappable_pod("other"), template="t9")
    scene = Scene(gone, other, swappable_pod("a"))

    scene.step()
    scene.say("a", SWITCHED)
    scene.prove()

    assert scene.prove().done
    assert (scene.told("gone"), scene.told("other")) == (None, None)


@pytest.mark.parametrize("state", [STAGING, LOADING])
def test_a_worker_that_never_ends_what_it_began_is_told_of_and_no_version_is_blamed(state: str) -> None:
    scene = two_pods()
    scene.step()
    scene.say("a", state)

    assert not scene.step(seconds=1190).silent
    stuck = scene.step(seconds=20)
    assert (stuck.silent, stuck.condemned, stuck.failures, stuck.order) == (True, False, (), None)
    assert stuck.message.endswith("; it should have ended or failed long ago: see the pod's logs, or delete the pod")

    scene.say("a", SWITCHED)
    assert not scene.step().silent


def test_a_pod_that_switched_and_is_never_ready_is_told_of_and_no_version_is_blamed() -> None:
    scene = two_pods()
    scene.step()
    scene.say("a", SWITCHED)
    scene.change("a", ready=False)

    assert not scene.step(seconds=1190).silent
    stuck = scene.step(seconds=20)
    assert (stuck.silent, stuck.condemned, stuck.failures, stuck.order) == (True, False, (), None)
    assert stuck.message.endswith("; it should be long ago: see the pod's events and logs, or delete the pod")


@pytest.mark.parametrize(
    "trouble",
    [
        {"status": None},
        {"ready": False},
    ],
    ids=["mute", "not ready"],
)
def test_a_later_pod_that_never_comes_to_serve_is_told_of_and_no_version_is_blamed(trouble: dict[str, object]) -> None:
    scene = two_pods()
    scene.step()
    scene.say("a", SWITCHED)
    scene.prove()
    scene.step()
    assert scene.told("b") == f"{NEW}.5"
    scene.say("b", SWITCHED)
    scene.change("b", **trouble)

    assert not scene.step(seconds=1190).silent
    stuck = scene.step(seconds=20)
    assert (stuck.silent, stuck.condemned, stuck.failures, stuck.order) == (True, False, (), None)
    assert stuck.message == (
        "1 of 2 replicas serve v2; waiting for b on node1; it should be long ago: see the pod's events and logs, or "
        "delete the pod"
    )


def test_an_eviction_for_anything_but_memory_puts_no_swap_off() -> None:
    scene = two_pods()
    scene.step()
    scene.change("a", lost="Evicted", lost_message="The node was low on resource: ephemeral-storage.", ready=False)

    assert not scene.step(seconds=5).room_refused
    assert scene.told("b") == f"{NEW}.5"

"""A swap step by step: one pod tries, the others follow, and what fails costs nobody anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cosyvoice_operator import swap
from cosyvoice_operator.failures import RETRIES, Verdict
from cosyvoice_operator.swap import FAILED, LOADING, STAGING, SWITCHED
from tests.unit.operator.swapping import FIRST, GOAL, NEW, OLD, Scene, swappable_pod

BACK = replace(GOAL, revision=OLD, version="v1", proven=True)
SERVED = replace(GOAL, proven=True, served=True)


def two_pods() -> Scene:
    return Scene(swappable_pod("a"), swappable_pod("b"))


def test_a_whole_swap() -> None:
    scene = two_pods()

    first = scene.step()
    assert (first.current, first.candidate, scene.orders()) == (OLD, NEW, [f"{NEW}.5", None])
    assert "a on node1 is told to load v2" in first.message
    assert "waiting for a on node1 to begin" in scene.step().message
    scene.say("a", STAGING)
    assert (staging := scene.step()).reason == "Staging"
    assert "a on node1 stages v2 while it serves" in staging.message
    scene.say("a", LOADING, phase="Map")
    assert "a on node1 loads v2 while it serves (Map)" in scene.step().message
    assert scene.orders() == [f"{NEW}.5", None]

    scene.say("a", SWITCHED)
    assert scene.step().current == OLD
    assert scene.step(seconds=4).current == OLD
    proven = scene.step(seconds=1)
    assert (proven.current, proven.candidate, proven.order, proven.done) == (NEW, None, None, False)

    assert not scene.step().done
    assert scene.orders() == [f"{NEW}.5", f"{NEW}.5"]
    scene.say("b", LOADING)
    assert "1 of 2" not in scene.step().message
    scene.say("b", SWITCHED)
    assert not scene.step().done
    last = scene.step(seconds=5)
    assert (last.done, last.order, last.message) == (True, None, "2 of 2 replicas serve v2")


def test_a_pod_that_is_not_ready_tries_nothing() -> None:
    scene = Scene(swappable_pod("a", ready=False), swappable_pod("b"))

    scene.step()

    assert scene.orders() == [None, f"{NEW}.5"]


def test_without_a_ready_pod_nothing_is_tried() -> None:
    scene = Scene(swappable_pod("a", ready=False))

    assert "waiting for a replica that is ready" in scene.step().message
    assert (scene.live.current, scene.live.candidate) == (OLD, NEW)
    assert scene.orders() == [None]


def test_a_pod_that_switched_and_is_not_ready_proves_nothing_yet() -> None:
    scene = two_pods()
    scene.step()
    scene.say("a", SWITCHED)
    scene.change("a", ready=False)

    assert scene.prove().current == OLD

    scene.change("a", ready=True)
    assert scene.prove().current == NEW


def test_what_serves_only_for_a_moment_proves_nothing() -> None:
    scene = two_pods()
    scene.step()
    scene.say("a", SWITCHED)
    scene.step()
    scene.change("a", ready=False)
    scene.step(seconds=3)
    scene.change("a", ready=True)

    assert scene.step(seconds=3).current == OLD
    assert scene.step(seconds=5).current == NEW


def test_a_pod_that_cannot_be_asked_is_not_told_again() -> None:
    scene = two_pods()
    scene.step()
    scene.change("a", status=None)

    assert scene.step(seconds=60).order is None


def test_a_pod_that_has_what_it_was_told_to_load_and_restarts_is_waited_for() -> None:
    scene = Scene(swappable_pod("a", NEW, order=f"{NEW}.5.1"), swappable_pod("b", OLD), current=NEW)
    scene.say("a", FAILED, reason="EngineDied")
    scene.change("a", ready=False)

    step = scene.step(seconds=60)

    assert (step.order, step.failures, step.done) == (None, (), False)
    assert "waiting for a" in step.message


def test_what_a_worker_says_of_an_earlier_order_counts_for_nothing() -> None:
    scene = two_pods()
    scene.step()
    scene.say("a", FAILED, reason="MissingTensor")
    scene.attempt = replace(FIRST, number=9)

    step = scene.step()

    assert (step.failures, scene.told("a")) == ((), f"{NEW}.9")


def test_an_order_that_is_not_taken_up_is_given_again_under_the_same_name() -> None:
    scene = two_pods()
    scene.step()
    before = scene.pods["a"].order

    assert scene.step(seconds=9).order is None
    assert scene.step(seconds=1).order is not None
    assert scene.told("a") == f"{NEW}.5"
    assert scene.pods["a"].order != before


def test_a_version_that_cannot_be_loaded_is_condemned_at_once_and_nobody_else_tries_it() -> None:
    scene = two_pods()
    scene.step()
    scene.say("a", FAILED, reason="MissingTensor", tensor="llm.weight", file="llm.pt", message="no llm.weight")

    step = scene.step(seconds=60)

    (failure,) = step.failures
    assert (failure.verdict, failure.reason, failure.pod, failure.node) == (
        Verdict.FATAL,
        "MissingTensor",
        "a",
        "node1",
    )
    assert (failure.said.tensor, failure.said.file, failure.message) == ("llm.weight", "llm.pt", "no llm.weight")
    assert failure.time is not None
    assert step.condemned
    assert (step.order, step.current, scene.orders()) == (None, OLD, [f"{NEW}.5", None])


@pytest.mark.parametrize("reason", ["EngineDied", "LoadTimeout", "OutOfMemory", ""])
def test_what_may_pass_by_itself_is_tried_so_many_times_more(reason: str) -> None:
    scene = two_pods()
    scene.step()

    tried = []
    for _ in range(RETRIES + 3):
        scene.say("a", FAILED, **({"reason": reason} if reason else {}))
        step = scene.step(seconds=40)
        tried.append(scene.told("a"))
        if step.condemned:
            break

    assert tried == [f"{NEW}.6", f"{NEW}.7", f"{NEW}.8", f"{NEW}.8"]
    assert scene.attempt.tries == RETRIES
    assert scene.orders()[1] is None


def test_a_retry_waits_a_moment() -> None:
    scene = two_pods()
    scene.step()
    scene.say("a", FAILED, reason="EngineDied")

    assert scene.step(seconds=4).order is None
    assert scene.attempt == FIRST
    assert scene.step(seconds=1).order is not None

    scene.say("a", FAILED, reason="EngineDied")
    assert scene.step(seconds=9).order is None
    assert scene.step(seconds=1).order is not None


def test_a_source_that_is_not_there_condemns_at_the_deadline_only() -> None:
    scene = two_pods()
    scene.step()
    for _ in range(7):
        scene.say("a", FAILED, reason="SourceUnreachable")
        step = scene.step(seconds=60)
        assert not step.condemned
        assert step.order is not None
    scene.say("a", FAILED, reason="SourceUnreachable")

    step = scene.step(seconds=700)

    assert step.condemned
    assert step.order is None


def test_want_of_room_is_nobodys_fault_and_tried_again_after_a_while() -> None:
    scene = two_pods()
    scene.step()
    for number in (6, 7, 8):
        scene.say("a", FAILED, room=True, reason="OutOfMemory", message="2 GiB are needed, 1 GiB is free")
        refused = scene.step(seconds=5)
        assert (refused.room_refused, refused.order) == (True, None)
        assert "2 GiB are needed" in refused.message
        assert not refused.condemned
        scene.step(seconds=3600)
        assert scene.told("a") == f"{NEW}.{number}"
    assert scene.attempt.tries == 0


def test_a_failure_after_it_was_proven_is_told_and_the_way_back_orders_every_pod_back() -> None:
    scene = Scene(swappable_pod("a"), swappable_pod("b"), swappable_pod("c"))
    scene.step()
    scene.say("a", SWITCHED)
    scene.prove()
    scene.step()
    scene.say("b", FAILED, reason="NonFiniteAudio")
    assert scene.step().condemned
    assert (scene.live.current, scene.orders()) == (NEW, [f"{NEW}.5", f"{NEW}.5", None])

    scene.attempt = replace(FIRST, number=6)
    assert (scene.step(BACK).current, scene.live.candidate) == (OLD, None)
    assert scene.orders() == [f"{OLD}.6", f"{NEW}.5", None]
    scene.say("a", SWITCHED)
    scene.step(BACK)
    assert scene.orders() == [f"{OLD}.6", f"{OLD}.6", None]
    scene.say("b", SWITCHED)

    assert scene.prove(BACK).done


def test_the_way_back_from_a_failed_try_begins_with_what_pods_load() -> None:
    scene = two_pods()
    scene.step()
    scene.say("a", FAILED, reason="MissingTensor")
    scene.attempt = replace(FIRST, number=6)

    step = scene.step(BACK)

    assert (step.current, step.candidate, step.done) == (OLD, None, False)
    assert scene.orders() == [f"{OLD}.6", None]
    scene.say("a", SWITCHED)
    assert scene.prove(BACK).done


def test_an_edit_in_the_middle_makes_the_pod_that_tried_try_the_newer_one() -> None:
    scene = two_pods()
    scene.step()
    scene.say("a", LOADING)
    scene.attempt = replace(FIRST, number=6)

    step = scene.step(replace(GOAL, revision="r3", version="v3"))

    assert (step.current, step.candidate, scene.orders()) == (OLD, "r3", ["r3.6", None])


def test_a_pod_that_starts_meanwhile_loads_what_is_proven_and_is_told_only_if_it_did_not() -> None:
    scene = Scene(swappable_pod("a", NEW), swappable_pod("b", NEW), current=NEW)
    scene.pods["c"] = swappable_pod("c", None, ready=False)

    assert "2 of 3 replicas serve v2; waiting for c" in scene.step().message
    assert scene.orders() == [None, None, None]

    scene.pods["c"] = swappable_pod("c", OLD)  # it had staged before the new version was proven
    scene.step()
    assert scene.orders() == [None, None, f"{NEW}.5"]


def test_a_worker_that_does_not_answer_is_believed_only_when_it_served_before() -> None:
    scene = Scene(swappable_pod("a", NEW), swappable_pod("b", None), current=NEW)

    assert not scene.prove().done
    assert scene.step(SERVED).done
    assert scene.orders() == [None, None]


def test_a_model_that_has_been_swapped_needs_nothing() -> None:
    scene = Scene(swappable_pod("a", NEW), swappable_pod("b", NEW, order=f"{NEW}.3.17"), current=NEW)

    step = scene.step(SERVED)

    assert (step.done, step.order, step.current, step.candidate, step.failures) == (True, None, NEW, None, ())


def test_planning_twice_plans_the_same() -> None:
    scene = two_pods()

    assert swap.plan(scene.observed, GOAL, FIRST, scene.now) == swap.plan(scene.observed, GOAL, FIRST, scene.now)

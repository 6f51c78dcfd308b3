"""Whatever pods do in a swap: nothing unproven is loaded by all, one goes at a time, and it comes to an end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cosyvoice_operator import order
from cosyvoice_operator.swap import FAILED, LOADING, STAGING, SWITCHED
from tests.unit.operator.swapping import NEW, OLD, Scene, swappable_pod

NAMES = ("a", "b", "c")
SETTLED_WITHIN = 40

Action = tuple[str, int, int]
actions = st.lists(
    st.tuples(
        st.sampled_from(["stages", "loads", "switches", "fails", "has no room", "restarts", "goes", "is silent"]),
        st.integers(0, 2),
        st.integers(1, 130),
    ),
    max_size=25,
)


@given(actions)
def test_only_what_a_pod_has_served_is_ever_loaded_by_all(happenings: list[Action]) -> None:
    scene = Scene(*(swappable_pod(name) for name in NAMES))
    proven = False
    for happening in happenings:
        act(scene, happening)
        proven = proven or any(pod.revision == NEW for pod in scene.pods.values())
        scene.step(seconds=happening[2])

        assert scene.live.current == OLD or proven
        assert scene.live.candidate == (NEW if scene.live.current == OLD else None)
        assert sum(is_under_way(scene, name) for name in scene.pods) <= 1


@given(actions)
def test_when_pods_obey_again_all_of_them_serve_it_and_nothing_more_is_written(happenings: list[Action]) -> None:
    scene = Scene(*(swappable_pod(name) for name in NAMES))
    for happening in happenings:
        act(scene, happening)
        scene.step(seconds=happening[2])

    for _ in range(SETTLED_WITHIN):
        obey(scene)
        step = scene.step(seconds=10)
        if step.done:
            break

    assert step.done
    assert all(pod.revision == NEW for pod in scene.pods.values())
    before = (scene.orders(), scene.live, scene.attempt)
    assert scene.step(seconds=1000).order is None
    assert (scene.orders(), scene.live, scene.attempt) == before


def act(scene: Scene, happening: Action) -> None:
    """One thing happens to one pod; what a pod cannot do, without an order or after it switched, does not happen."""
    what, index, _ = happening
    name = NAMES[index]
    pod = scene.pods[name]
    told = order.parse(pod.order)
    if what == "goes":
        scene.pods[name] = swappable_pod(name, scene.live.current)
    elif what == "is silent":
        scene.change(name, status=None)
    elif told is not None and what == "restarts":
        scene.pods[name] = swappable_pod(name, scene.live.current, order=pod.order)
        scene.say(name, SWITCHED if told.revision == scene.live.current else FAILED, reason="EngineDied")
    elif told is not None and pod.revision != told.revision:
        states = {"stages": STAGING, "loads": LOADING, "switches": SWITCHED}
        scene.say(name, states.get(what, FAILED), room=what == "has no room", reason="OutOfMemory")


def obey(scene: Scene) -> None:
    """Every pod answers, and has done what it was told last."""
    for name, pod in scene.pods.items():
        if order.parse(pod.order) is not None:
            scene.say(name, SWITCHED)
        elif pod.status is None:
            scene.pods[name] = swappable_pod(name, pod.revision)


def is_under_way(scene: Scene, name: str) -> bool:
    """Whether the pod has an order of this attempt that it has neither fulfilled nor failed."""
    pod = scene.pods[name]
    told = order.parse(pod.order)
    if told is None or told.attempt != scene.attempt.number or pod.revision == told.revision:
        return False
    said = pod.status.swap if pod.status else None
    return said is None or said.order != told.name or said.state != FAILED

"""The operator may be killed at any of its writes; its successors always bring the model to the same end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pytest

from cosyvoice_operator.cluster import Cluster
from tests.apiserver import final_state
from tests.apiserver.control_plane import ControlPlane
from tests.apiserver.episode import MODEL, Episode
from tests.apiserver.mortal_proxy import Death, Moment

Tell = Callable[[Episode, Iterable[Death]], Awaitable[None]]
Play = Callable[[Tell, Iterable[Death]], Awaitable["End"]]


@dataclass(frozen=True, slots=True)
class Story:
    """What the user does while operators die, the status that it comes to, and how many pods of before live on."""

    tell: Tell
    reason: str
    untouched: int


@dataclass(frozen=True, slots=True)
class End:
    """What a story came to. `told_again`: events that were sent more than once."""

    state: dict[str, Any]
    untouched: int
    told_again: tuple[tuple[str, str], ...]
    died: int

    @property
    def reason(self) -> str:
        return str(self.state["model"]["status"]["reason"])

    def is_like(self, other: End) -> bool:
        return (self.state, self.untouched, self.told_again) == (other.state, other.untouched, other.told_again)


HOT_SWAP = {"strategy": "HotSwap"}
# What the worker of v-bad says.
BAD = {
    "schema": 1,
    "reason": "ShapeMismatch",
    "phase": "Map",
    "file": "llm.pt",
    "tensor": "speech_embedding.weight",
    "expected": "(6564, 896)",
    "actual": "(6561, 896)",
    "message": "speech_embedding.weight has another shape",
}


async def a_new_model(episode: Episode, deaths: Iterable[Death]) -> None:
    await episode.doom(deaths)
    await episode.apply(version="v1")


async def a_rollout(episode: Episode, deaths: Iterable[Death]) -> None:
    await episode.apply(version="v1")
    await episode.settle()
    await episode.doom(deaths)
    await episode.apply(version="v2")


async def a_rollback(episode: Episode, deaths: Iterable[Death]) -> None:
    await episode.apply(version="v1")
    await episode.settle()
    await episode.doom(deaths)
    await episode.apply(version="v-bad")


async def a_swap(episode: Episode, deaths: Iterable[Death]) -> None:
    await episode.apply(version="v1", rollout=HOT_SWAP)
    await episode.settle()
    await episode.doom(deaths)
    await episode.apply(version="v2", rollout=HOT_SWAP)


async def a_swap_back(episode: Episode, deaths: Iterable[Death]) -> None:
    """The pods serve what they were swapped to already: that is what they have to come back to."""
    await episode.apply(version="v1", rollout=HOT_SWAP)
    await episode.settle()
    await episode.apply(version="v2", rollout=HOT_SWAP)
    await episode.settle()
    await episode.doom(deaths)
    await episode.apply(version="v-bad", rollout=HOT_SWAP)


STORIES = {
    "new": Story(a_new_model, "Ready", untouched=0),
    "rollout": Story(a_rollout, "Ready", untouched=0),
    "rollback": Story(a_rollback, "RolledBack", untouched=2),
    "swap": Story(a_swap, "Ready", untouched=2),
    "swap-back": Story(a_swap_back, "RolledBack", untouched=2),
}


@pytest.fixture
def play(control_plane: ControlPlane, admin: Cluster, namespace: str, tmp_path: Path) -> Play:
    """Plays a story to its end, in a namespace of its own."""
    number = count(1)

    async def run(tell: Tell, deaths: Iterable[Death]) -> End:
        where = f"{namespace}-{next(number)}"
        async with Episode(control_plane, admin, where, tmp_path, {"v-bad": BAD}) as episode:
            await episode.start_operator()
            await tell(episode, deaths)
            await episode.settle()
            told = Counter(await episode.told())
            return End(
                state=await final_state.of(admin, where, MODEL),
                untouched=await episode.untouched(),
                told_again=tuple(event for event, times in told.items() if times > 1),
                died=episode.died,
            )

    return run


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(STORIES["new"], id="new", marks=pytest.mark.long),
        pytest.param(STORIES["rollout"], id="rollout", marks=pytest.mark.long),
        pytest.param(STORIES["rollback"], id="rollback"),
        pytest.param(STORIES["swap"], id="swap", marks=pytest.mark.long),
        pytest.param(STORIES["swap-back"], id="swap-back", marks=pytest.mark.long),
    ],
)
async def test_operators_that_die_after_each_of_their_writes_end_where_an_undisturbed_one_does(
    play: Play, story: Story
) -> None:
    undisturbed = await play(story.tell, ())
    assert (undisturbed.reason, undisturbed.untouched, undisturbed.told_again) == (story.reason, story.untouched, ())

    end = await play(story.tell, repeat(Death(1, Moment.AFTER)))

    assert end.state == undisturbed.state
    assert end.is_like(undisturbed)
    assert end.died >= 4


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
async def test_wherever_an_operator_dies_its_successor_ends_where_an_undisturbed_one_does(
    play: Play, story: Story, moment: Moment
) -> None:
    undisturbed = await play(story.tell, ())

    for write in count(1):
        end = await play(story.tell, [Death(write, moment)])
        assert end.state == undisturbed.state, f"killed {moment.value} write {write}"
        assert end.is_like(undisturbed), f"killed {moment.value} write {write}"
        if not end.died:  # it had nothing left to write
            break

    assert write > 4

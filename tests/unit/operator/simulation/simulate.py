"""Runs one history in a world of its own, to its end."""

from __future__ import annotations

import asyncio

from tests.unit.operator.simulation import ending
from tests.unit.operator.simulation.actions import Action, happen, perform
from tests.unit.operator.simulation.fake_cluster import FakeCluster
from tests.unit.operator.simulation.history import History, of_seed
from tests.unit.operator.simulation.invariants import Invariants
from tests.unit.operator.simulation.world import World


class HistoryFailedError(AssertionError):
    """A history broke a rule. Its text has the history, what happened in it, and what was wrong."""


def run(
    history: History, loop: asyncio.Runner, title: str = "history", *, door: type[FakeCluster] = FakeCluster
) -> World:
    """The world as the history leaves it; the operator reaches it through `door`. Raises HistoryFailedError."""
    world = World(history.fates, Invariants, echo=history.echo, pace=history.pace, door=door)
    try:
        loop.run(_live(world, history))
    except Exception as error:
        story = f"{title}: {error}\n\n{history!r}\n\n{world.story()}"
        raise HistoryFailedError(story) from error
    return world


def run_seed(seed: int, loop: asyncio.Runner) -> World:
    """The world as the history of this seed leaves it. Raises HistoryFailedError."""
    return run(of_seed(seed), loop, f"seed {seed} (python -m tests.unit.operator.simulation {seed})")


async def _live(world: World, history: History) -> None:
    world.create_model()
    for path, value in history.spec:
        happen(world, Action("spec", (path, value)))
    for action in history.actions:
        await perform(world, action)
    world.note("-- events stop")
    if history.healed:
        ending.heal(world)
    await ending.settle(world)
    await ending.check_rest(world)
    if history.healed:
        ending.check_ending(world)

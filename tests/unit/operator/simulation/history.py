"""Random histories: what becomes of each version, what happens, and when. One seed makes one history, for ever."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.unit.operator.simulation.actions import Action
from tests.unit.operator.simulation.world import Pace

VERSIONS = ("v1", "v2", "v3")
BAD = (
    "corrupt", "unreachable", "stage-oom", "incompatible", "silent", "slow", "segfault", "hang", "flaky", "dies",
    "image", "config", "mount",
)  # fmt: skip
WAITS = (0, 0, 1, 2, 5, 9, 20, 60, 150, 700)
STRATEGIES = ("RollingUpdate", "RollingUpdate", "Replace", "HotSwap", "HotSwap", "Auto")

Fates = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class History:
    """What happens, and in what world.

    `echo`: the operator is told of its own writes too. `healed`: in the end the cluster has room and all its nodes.
    """

    fates: Fates
    spec: tuple[tuple[str, Any], ...]
    actions: tuple[Action, ...]
    echo: bool = True
    pace: Pace = Pace.QUICK
    healed: bool = True


def of_seed(seed: int) -> History:
    """The history of this seed."""
    dice = random.Random(seed)  # noqa: S311 - a simulation
    return History(
        fates=tuple((version, _fates(dice, good=0.8 if version == "v1" else 0.35)) for version in VERSIONS),
        spec=(
            ("worker.replicas", dice.choice((1, 2, 2, 3))),
            ("rollout.progressDeadlineSeconds", dice.choice((60, 600))),
            ("rollout.historyLimit", dice.choice((0, 1, 5))),
            ("rollout.strategy", dice.choice(STRATEGIES)),
        ),
        actions=(Action("wait", (), dice.choice((0, 2, 8, 40, 40, 40))), *_actions(dice)),
        echo=dice.random() < 0.3,
        pace=dice.choice((Pace.EAGER, Pace.QUICK, Pace.LAZY)),
        healed=dice.random() < 0.8,
    )


def _actions(dice: random.Random) -> list[Action]:
    actions = []
    kinds, weights = zip(*_KINDS, strict=True)
    for _ in range(dice.randint(2, 7)):
        what, *args = dice.choices(kinds, weights)[0](dice)
        actions.append(Action(what, tuple(args), dice.choice(WAITS)))
    if dice.random() < 0.2:  # versions in quick succession
        actions += [Action("spec", ("version", version), dice.choice((5, 9, 14, 20))) for version in VERSIONS]
    return actions


def _fates(dice: random.Random, good: float) -> tuple[str, ...]:
    """Of each pod of a version in turn."""
    if dice.random() < good:
        return ("good",)
    bad = dice.choice(BAD)
    return dice.choice(((bad,), (bad,), (bad,), ("good", bad), (bad, "good")))


def _version(dice: random.Random) -> tuple[Any, ...]:
    return "spec", "version", dice.choice(VERSIONS)


def _other_spec(dice: random.Random) -> tuple[Any, ...]:
    return (
        "spec",
        *dice.choice(
            (
                ("worker.replicas", dice.choice((0, 1, 2, 3))),
                ("paused", dice.random() < 0.5),
                ("rollout.strategy", dice.choice(STRATEGIES)),
                ("rollout.historyLimit", dice.choice((0, 1, 5))),
                ("rollout.automaticRollback", dice.random() < 0.6),
                ("rollout.onNoCapacity", dice.choice(("Wait", "Replace", "Fail"))),
                ("engine.loadTimeoutSeconds", dice.choice((300, 900))),
                ("source.uri", dice.choice(("pvc://voices/model", "pvc://voices/other", "hostpath:///no"))),
            )
        ),
    )


def _fault(dice: random.Random) -> tuple[Any, ...]:
    return "fault", dice.randint(0, 8), dice.random() < 0.5, dice.random() < 0.7


def _interrupt(dice: random.Random) -> tuple[Any, ...]:
    return "interrupt", dice.randint(1, 16), *dice.choice((_version, _other_spec, _pin, _retry, _pod))(dice)


def _pin(dice: random.Random) -> tuple[Any, ...]:
    return dice.choice((("pin", dice.randint(-1, 3)), ("pin", 0), ("unpin",), ("unpin",)))


def _retry(dice: random.Random) -> tuple[Any, ...]:
    return "retry", dice.choice((None, "one", "two"))


def _pod(dice: random.Random) -> tuple[Any, ...]:
    index = dice.randint(0, 3)
    return dice.choice(
        (("delete-pod", index), ("crash", index), ("lose", index, "Evicted"), ("lose", index, "Preempted"))
    )


def _cluster(dice: random.Random) -> tuple[Any, ...]:
    node = dice.choice(("node1", "node2"))
    return dice.choice(
        (
            ("slots", node, dice.choice((0, 1, 3))),
            ("quota", dice.choice((1, 2, 3, None))),
            ("node", node, False),
            ("node", node, True),
            ("room", dice.random() < 0.5),
            ("other-bytes", dice.choice(VERSIONS)),
        )
    )


def _turn(dice: random.Random) -> tuple[Any, ...]:
    return "fate", dice.choice(VERSIONS), _fates(dice, good=0.5)


def _hands(dice: random.Random) -> tuple[Any, ...]:
    """Someone works on our objects by hand."""
    return dice.choice(
        (
            ("delete", "Deployment"),
            ("delete", "Service"),
            ("delete-revision", dice.randint(0, 3)),
            ("restart-rollout", str(dice.randint(1, 9))),
            ("set-image", "another:1"),
            ("pause-deployment",),
        )
    )


def _operator(dice: random.Random) -> tuple[Any, ...]:
    return dice.choice(
        (
            ("restart",),
            ("poke",),
            ("deaf", dice.choice((10, 60, 400))),
            ("upgrade", dice.choice(("worker:2", "worker:3"))),
        )
    )


_KINDS: tuple[tuple[Callable[[random.Random], tuple[Any, ...]], float], ...] = (
    (_version, 8),
    (_other_spec, 3),
    (_fault, 4),
    (_interrupt, 3),
    (_pin, 2),
    (_retry, 1),
    (_pod, 2),
    (_cluster, 2),
    (_turn, 1.5),
    (_hands, 1.5),
    (_operator, 2.5),
)

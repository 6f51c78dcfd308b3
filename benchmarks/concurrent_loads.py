"""Five workers start on a node at once. How many are lost to its memory limit?

Each row is a limit on all five together, without swap. The weights lie in tmpfs and are charged elsewhere, as they are
on a node where something else has staged them. Each loader keeps what it has loaded until all five have ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks._cgroup import limited
from benchmarks._figures import spread
from benchmarks._loaders import loaders
from benchmarks._models import full_size, weight_bytes
from benchmarks._rounds import alternate, choose_rounds, progress
from benchmarks._table import goal, machine, table

GIB = 2**30
LOADERS = 5
# Of this machine's memory the benchmark takes 2.4 GiB for the weights and the limit.
LIMITS = (3 * GIB, 8 * GIB)
WAYS = ("copying", "mapped")
MUST_LOSE = 3


def main() -> None:
    """Measure and print."""
    rounds = choose_rounds(__doc__, full=3, quick=1)
    with full_size() as model:
        weights = weight_bytes(model)
        lost = {limit: _rounds_under(limit, rounds, model) for limit in LIMITS}
    print(report(weights, lost))


def _rounds_under(limit: int, rounds: int, model: Path) -> dict[str, list[int]]:
    progress(f"under {limit / GIB:g} GiB")
    return alternate(rounds, {way: partial(lost_of, way, model, limit) for way in WAYS})


def lost_of(way: str, model: Path, limit: int) -> int:
    """How many of LOADERS that begin together under `limit` bytes are killed. Raises RuntimeError for other ends."""
    with limited(limit) as cgroup, loaders(LOADERS, way, model, cgroup.members) as started:
        for loader in started:
            loader.imported()
        for loader in started:
            loader.begin()
        for loader in started:
            loader.result()
        # Now, not above: one that had loaded already can be killed when another needs more.
        lost = sum(loader.process.poll() is not None for loader in started)
        if lost != cgroup.killed():
            raise RuntimeError(f"{lost} loaders are gone, but the kernel says that it killed {cgroup.killed()}")
    return lost


def report(weights: int, lost: Mapping[int, Mapping[str, Sequence[int]]]) -> str:
    """The table of lost loaders by limit and way, and the goals at the largest limit that costs the others enough."""
    rows = [
        [f"{limit / GIB:g} GiB ({limit / weights:.1f} x the weights)", *(_counts(ways[way]) for way in WAYS)]
        for limit, ways in lost.items()
    ]
    telling = [limit for limit, ways in lost.items() if min(ways["copying"]) >= MUST_LOSE]
    heading = f"{machine()}; {weights / GIB:.2f} GiB of weights, {LOADERS} loaders at once, lost in each round"
    lines = [heading, "", table(["memory limit", *WAYS], rows), ""]
    if telling:
        chosen = max(telling)
        most = max(lost[chosen]["mapped"])
        lines.append(goal(f"mapped, lost at {chosen / GIB:g} GiB, where copying loses {MUST_LOSE} or more", most, 0, 0))
    else:
        lines.append(f"at none of these limits does copying lose {MUST_LOSE}")
    return "\n".join(lines)


def _counts(counts: Sequence[int]) -> str:
    found = spread([float(count) for count in counts])
    return f"{found.smallest:.0f}" if found.smallest == found.largest else found.text(0)


if __name__ == "__main__":
    main()

"""How long does a full-size model take to load, and how much memory of its own does the process need for it?

Mapped: open, map, assign, fold, as the engine does. Copying: modules with their initial values, `torch.load`,
`load_state_dict`. Each time a fresh process, its imports not counted, the files in tmpfs.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks._figures import ratios, spread
from benchmarks._loaders import Load, load_once
from benchmarks._models import full_size, weight_bytes
from benchmarks._rounds import alternate, choose_rounds
from benchmarks._table import goal, machine, table

MIB = 2**20
HEAD = ("way", "load, s", "with touching, s", "CPU of that, s", "memory grown, MiB", "peak of that, MiB")


def main() -> None:
    """Measure and print."""
    rounds = choose_rounds(__doc__, full=7, quick=2)
    with full_size() as model:
        weights = weight_bytes(model)
        runs = alternate(
            rounds, {"copying": lambda: load_once("copying", model), "mapped": lambda: load_once("mapped", model)}
        )
    print(report(weights, runs["mapped"], runs["copying"]))


def report(weights: int, mapped: Sequence[Load], copying: Sequence[Load]) -> str:
    """The table of both ways, their ratios round by round, and the goals; `weights` is in bytes."""
    load = spread(ratios([run.load for run in mapped], [run.load for run in copying]))
    touched = spread(ratios([run.load + run.touch for run in mapped], [run.load + run.touch for run in copying]))
    cpu = spread(ratios([run.cpu for run in mapped], [run.cpu for run in copying]))
    growth = spread([run.growth / weights for run in mapped])
    peak = spread(ratios([run.peak for run in mapped], [run.peak for run in copying]))
    grown = spread(ratios([run.growth for run in mapped], [run.growth for run in copying]))
    ratio_row = ["mapped / copying", load.text(3), touched.text(3), cpu.text(3), grown.text(3), peak.text(3)]
    return "\n".join(
        (
            f"{machine()}; {weights / MIB:.0f} MiB of weights, {len(mapped)} rounds; median (smallest-largest)",
            "",
            table(HEAD, [_row("copying", copying), _row("mapped", mapped), ratio_row]),
            "",
            goal("time to load, mapped / copying", load.median, 0.1, 3),
            goal("memory grown, mapped / weights", growth.median, 0.06, 3),
            goal("peak, mapped / copying", peak.median, 0.15, 3),
        )
    )


def _row(name: str, runs: Sequence[Load]) -> list[str]:
    return [
        name,
        spread([run.load for run in runs]).text(),
        spread([run.load + run.touch for run in runs]).text(),
        spread([run.cpu for run in runs]).text(),
        spread([run.growth / MIB for run in runs]).text(0),
        spread([run.peak / MIB for run in runs]).text(0),
    ]


if __name__ == "__main__":
    main()

"""`cosyvoice-worker make-bad`: a copy of a model directory with one fault, to rehearse what then happens."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cosyvoice_worker.faults.fault import Damage, Fault
from cosyvoice_worker.faults.kit import FAULTS, make_bad
from cosyvoice_worker.outcome import EXIT_CODES, RETRYABLE_EXIT_CODES

if TYPE_CHECKING:
    from cosyvoice_worker.commands.base import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """The command's options."""
    parser = subparsers.add_parser(
        "make-bad",
        help="make a bad model directory of a good one",
        description=__doc__,
        epilog="faults:\n" + "\n".join(f"  {fault.name:<18} {fault.summary}" for fault in FAULTS.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("fault", metavar="FAULT", choices=FAULTS, help="what is to be wrong, see below")
    parser.add_argument("--model", required=True, type=Path, metavar="DIR", help="good model directory; only read")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="the bad one, which must not exist yet")


def run(args: argparse.Namespace) -> int:
    """Make it; tell what is wrong with it and what a worker should say. Raises WorkerError."""
    fault = FAULTS[args.fault]
    damage = make_bad(fault, args.model, args.out)
    sys.stdout.write(_in_words(args.out, fault, damage))
    return 0


def _in_words(out: Path, fault: Fault, damage: Damage) -> str:
    code = EXIT_CODES[fault.reason]
    retried = "retried" if code in RETRYABLE_EXIT_CODES else "not retried"
    where = f"{damage.file}, tensor {damage.tensor}" if damage.tensor else damage.file
    lines = [
        f"{out}: {where}: {damage.what}",
        f"expect: {fault.reason} in phase {fault.phase}, exit code {code}, {retried}",
    ]
    if damage.needs:
        lines.append(f"needs: {damage.needs}")
    return "\n".join(lines) + "\n"
